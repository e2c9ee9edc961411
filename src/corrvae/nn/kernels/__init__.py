"""Loops that numba compiles, for the CPU: a step's index work, and sums over gathered rows."""
