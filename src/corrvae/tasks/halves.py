"""Users cut in two: each user's items are split at random into two halves, which are two vertices joined by an edge."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Int
from scipy import sparse

from corrvae.graphs.graph import CorrelationGraph
from corrvae.tasks.kernels.halving import draw_halves


@final
@dataclass(frozen=True, eq=False)
class HalvedUsers:
    """Users and one draw of their halves: rows 2u and 2u + 1 of the features are the halves of user u.

    Attributes
    ----------
    items
        What each user has, one row each.
    features
        The halves, two rows for each user.
    graph
        An edge between the two halves of each user.

    Examples
    --------
    >>> users = halve_users(np.ones((3, 4)), random_state=0)
    >>> users.n_users, users.features.shape, users.graph.edges.tolist()
    (3, (6, 4), [[0, 1], [2, 3], [4, 5]])
    """

    items: sparse.csr_array
    features: sparse.csr_array
    graph: CorrelationGraph

    @property
    def n_users(self) -> int:
        """Number of users; there are twice as many halves."""
        return int(self.graph.n_edges)

    def redraw(self, rows: Int[np.ndarray, " rows"], generator: np.random.Generator) -> sparse.csr_array:
        """Draw halves anew, for ``CorrelatedVAE.fit(..., redraw=users.redraw)``.

        Both halves of a user, where both are asked for, are parts of the same draw: they share no item.

        Parameters
        ----------
        rows
            Rows of `features`.
        generator
            Where the draws come from.

        Examples
        --------
        >>> users = halve_users(np.ones((3, 4)), random_state=0)
        >>> drawn = users.redraw(np.array([2, 3]), np.random.default_rng(1))
        >>> drawn.sum(axis=1).tolist(), drawn.sum(axis=0).tolist()
        ([2.0, 2.0], [1.0, 1.0, 1.0, 1.0])
        """
        return _draw(self.items, rows, generator)


def halve_users(items: Any, *, random_state: int | np.random.Generator | None = None) -> HalvedUsers:
    """Split each user's items into two halves at random.

    Halves differ by one item at most. A user with a single item has an empty half; leave such users out beforehand.

    Parameters
    ----------
    items
        Matrix with a row for each user, dense or sparse.
    random_state
        Seed or generator of the draw.

    Examples
    --------
    >>> users = halve_users(np.ones((3, 4)), random_state=0)
    >>> users.features.shape, users.graph
    ((6, 4), CorrelationGraph(6 vertices, 3 edges))
    """
    table = sparse.csr_array(items, dtype=np.float32)
    table.sum_duplicates()
    table.eliminate_zeros()
    count = len(table.indptr) - 1
    halves = np.arange(2 * count)
    features = _draw(table, halves, np.random.default_rng(random_state))
    return HalvedUsers(table, features, CorrelationGraph(halves.reshape(count, 2), 2 * count))


def _draw(items: sparse.csr_array, rows: Int[np.ndarray, " rows"], generator: np.random.Generator) -> sparse.csr_array:
    users, place = np.unique(rows // 2, return_inverse=True)
    total = int((items.indptr[users + 1] - items.indptr[users]).sum())
    values, columns, offsets = draw_halves(
        items.indptr,
        items.indices,
        items.data,
        users,
        place,
        rows % 2,
        generator.random(len(users)),
        generator.random(total, dtype=np.float32),
    )
    return sparse.csr_array((values, columns, offsets), shape=(len(rows), items.shape[1]))  # pyright: ignore[reportOptionalSubscript]
