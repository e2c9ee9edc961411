"""Who has rated what, as a binary table."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int
from scipy import sparse


@final
@dataclass(frozen=True, eq=False)
class RatedItems:
    """A binary table with the ids of its rows and columns, which ascend.

    Attributes
    ----------
    matrix
        1 where the user of the row has rated the item of the column.
    users, items
        Ids of rows and columns.
    """

    matrix: sparse.csr_array
    users: Int[np.ndarray, " users"]
    items: Int[np.ndarray, " items"]


def rated_items(
    users: Int[np.ndarray, " ratings"], items: Int[np.ndarray, " ratings"], min_ratings: int, min_items: int = 1
) -> RatedItems:
    """Make the table of users and items, with the items that are rated often enough.

    Parameters
    ----------
    users, items
        Who has rated what; a rating that is given twice counts once.
    min_ratings
        Users that an item must have been rated by.
    min_items
        Of these items, how many a user must have rated.

    Examples
    --------
    >>> table = rated_items(np.array([7, 7, 8, 9]), np.array([1, 2, 2, 3]), min_ratings=2)
    >>> table.matrix.toarray().tolist(), table.users.tolist(), table.items.tolist()
    ([[1.0], [1.0]], [7, 8], [2])
    """
    if min_ratings < 1:
        raise ValueError(f"min_ratings must be at least 1, but is {min_ratings}")
    user_ids, rows = np.unique(users, return_inverse=True)
    item_ids, columns = np.unique(items, return_inverse=True)
    shape = (len(user_ids), len(item_ids))
    matrix = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    often = np.flatnonzero(np.bincount(matrix.indices, minlength=len(item_ids)) >= min_ratings)
    matrix = sparse.csr_array(matrix[:, often])
    active = np.flatnonzero(np.diff(matrix.indptr) >= min_items)
    return RatedItems(matrix[active], user_ids[active], item_ids[often])
