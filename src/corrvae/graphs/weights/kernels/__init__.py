"""Compiled loops of the spanning weights: plain arrays in, plain arrays out.

Every kernel releases the interpreter's lock, so that `progress.watch` can run it beside a progress bar; long ones take
the monitor's `control`, count their work in it and return early when it is set to stop.
"""
