"""Compiled loops behind the spanning weights: plain arrays in, plain arrays out.

Every kernel releases the interpreter's lock, so that `corrvae.monitor.watch` can run it beside a progress bar; long
ones take the monitor's `control`, count their work in it and return early when it says so.
"""
