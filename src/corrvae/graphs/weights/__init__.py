"""Spanning weights of a correlation graph's edges: exact, sketched or sampled.

`plan` is the entry. `pattern` takes the graph apart and decides how far to eliminate; `exact`, `sketch` and `sample`
solve; `kernels` holds the compiled loops. All but `plan` and `progress` load numba.
"""
