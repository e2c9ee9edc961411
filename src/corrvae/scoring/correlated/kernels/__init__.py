"""Compiled loops behind the correlated searches: plain arrays in, plain arrays out, without the interpreter's lock."""
