"""Sparse matrices from files: what their parts must be before anything compiled reads them."""

from typing import Any

import numpy as np


def check_compressed(matrix: Any) -> None:
    """Refuse a matrix by rows, columns or blocks whose parts do not fit together, with a `ValueError`.

    SciPy's own check passes over the pointers of a matrix whose last one is not above 0, and conversions then read
    wherever the others lead.

    Parameters
    ----------
    matrix
        A sparse matrix of SciPy with `indptr`.

    Examples
    --------
    >>> from scipy import sparse
    >>> wrong = sparse.csr_array((np.empty(0), np.empty(0, int), np.array([0, 7, 0])), shape=(2, 3))
    >>> wrong.check_format(full_check=True)
    >>> check_compressed(wrong)
    Traceback (most recent call last):
        ...
    ValueError: the pointers of its rows do not ascend
    """
    pointers = np.asarray(matrix.indptr)
    if pointers.ndim != 1 or pointers.size == 0 or pointers[0] != 0 or bool((pointers[1:] < pointers[:-1]).any()):
        raise ValueError("the pointers of its rows do not ascend")
    matrix.check_format(full_check=True)
