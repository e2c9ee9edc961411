"""Entries of a sparse table, as long tables list them: in any order, some of them twice."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse


@final
@dataclass(frozen=True, eq=False)
class AddedUp:
    """Entries as a matrix.

    Attributes
    ----------
    matrix
        Columns ascend within a row, each is there once, and none is zero.
    n_repeats
        Entries that had the place of another one.
    """

    matrix: sparse.csr_array
    n_repeats: int


def add_up(
    rows: Int[np.ndarray, " entries"],
    columns: Int[np.ndarray, " entries"],
    values: Float[np.ndarray, " entries"],
    shape: tuple[int, int],
) -> AddedUp:
    """Make a matrix of entries; those of the same place add up.

    A row comes out the same to the bit whatever other rows there are, as long as its own entries come in the same
    order: a table that is made in parts equals one that is made at once.

    Parameters
    ----------
    rows, columns, values
        The entries.
    shape
        Rows and columns of the matrix.

    Examples
    --------
    >>> made = add_up(np.array([1, 0, 1]), np.array([2, 0, 2]), np.array([1.0, 5.0, 3.0]), (2, 3))
    >>> made.matrix.toarray().tolist(), made.n_repeats
    ([[5.0, 0.0, 0.0], [0.0, 0.0, 4.0]], 1)
    """
    entries = sparse.coo_array((values, (rows, columns)), shape=shape)
    entries.has_canonical_format = True  # so that nothing is summed yet
    matrix = sparse.csr_array(entries.tocsr())
    # rows that happen to be sorted go the same way as all others, or sums would depend on the company they keep
    matrix.has_sorted_indices = matrix.has_canonical_format = False
    matrix.sum_duplicates()
    n_repeats = len(values) - int(matrix.nnz)
    matrix.eliminate_zeros()
    return AddedUp(matrix, n_repeats)
