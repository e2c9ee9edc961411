"""Hold vertices out of training, with their edges."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components


@final
@dataclass(frozen=True, eq=False)
class HoldOut:
    """Vertices in two parts that share none.

    Attributes
    ----------
    train, validation
        Vertex indices, ascending. An edge belongs to the part that both its ends are in; an edge between the parts
        belongs to neither.

    Examples
    --------
    >>> parts = hold_out(6, np.array([[0, 1], [2, 3], [4, 5]]), 0.34, 0)
    >>> len(parts.train), len(parts.validation)
    (4, 2)
    """

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]


def hold_out(n_vertices: int, edges: Int[np.ndarray, "edges 2"] | None, share: float, seed: int) -> HoldOut:
    """Hold out a share of the vertices, at random.

    Small connected components (pairs, for instance) are held out whole, so that their edges are not lost. Of large ones
    single vertices are held out. Every vertex has about the same chance.

    Parameters
    ----------
    n_vertices
        Number of vertices.
    edges
        The graph's edges, if there is a graph.
    share
        Share of the vertices, between 0 and 1. At least one is held out, and at least one is not.
    seed
        Of the draw.

    Examples
    --------
    >>> parts = hold_out(10, np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]), 0.2, 0)
    >>> parts.validation
    array([4, 5])
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"the share to hold out must lie between 0 and 1, got {share}")
    if n_vertices < 2:
        raise ValueError(f"there are too few rows ({n_vertices}) to hold any out")
    quota = min(max(1, round(share * n_vertices)), n_vertices - 1)
    generator = np.random.default_rng(seed)
    unit = _units(n_vertices, edges, quota)
    sizes = np.bincount(unit)
    chosen = np.zeros(len(sizes), dtype=bool)
    room = quota
    for candidate in generator.permutation(len(sizes)):
        if sizes[candidate] <= room:
            chosen[candidate] = True
            room -= int(sizes[candidate])
            if room == 0:
                break
    held = chosen[unit]
    return HoldOut(np.flatnonzero(~held), np.flatnonzero(held))


def _units(n_vertices: int, edges: np.ndarray | None, quota: int) -> np.ndarray:
    """Number what is held out together: a small component, or a single vertex of a large one."""
    if edges is None or len(edges) == 0:
        return np.arange(n_vertices)
    ones = np.ones(len(edges), dtype=np.int8)
    adjacency = sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_vertices, n_vertices))
    _, component = connected_components(adjacency, directed=False)
    # Components of up to a quarter of what is wanted: a few larger ones would speak for all.
    largest = max(quota // 4, min(2, quota))
    single = np.bincount(component)[component] > largest
    named = np.where(single, len(component) + np.arange(n_vertices), component)
    return np.unique(named, return_inverse=True)[1]
