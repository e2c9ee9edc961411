"""Rooted forests, level by level: the order in which a point can be drawn given its parent."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int
from scipy import sparse

from corrvae.graphs.ids import VertexIds
from corrvae.vertex_pairs import as_pairs


@final
@dataclass(frozen=True, eq=False)
class Level:
    """Vertices at one depth of a rooted forest.

    Attributes
    ----------
    children, parents
        Each vertex of this depth, and its parent.
    edges
        The edge (row of the forest's list) between them.
    """

    children: Int[np.ndarray, " level"]
    parents: Int[np.ndarray, " level"]
    edges: Int[np.ndarray, " level"]


@final
@dataclass(frozen=True, eq=False)
class RootedForest:
    """A forest with a root in every tree, isolated vertices included.

    Attributes
    ----------
    roots
        One vertex of each tree, the least.
    levels
        The other vertices by depth.
    """

    roots: Int[np.ndarray, " trees"]
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, n_vertices: int, edges: Int[np.ndarray, "edges 2"]) -> "RootedForest":
        """Root a forest, or say which edge makes it none.

        Examples
        --------
        >>> forest = RootedForest.of(4, np.array([[1, 0], [1, 2]]))
        >>> forest.roots, [level.children for level in forest.levels]
        (array([0, 3]), [array([1]), array([2])])
        """
        edges = as_pairs(edges, VertexIds(None, n_vertices))
        n_edges = len(edges)
        ends = np.concatenate([edges, edges[:, ::-1]])
        # Edge numbers from 1 on, since a stored zero would not count as an entry.
        numbers = np.tile(np.arange(1, n_edges + 1), 2)
        adjacency = sparse.coo_array((numbers, (ends[:, 0], ends[:, 1])), shape=(n_vertices, n_vertices)).tocsr()
        n_trees, labels = sparse.csgraph.connected_components(adjacency, directed=False)
        if n_edges != n_vertices - n_trees:
            _refuse_cycle(n_vertices, edges)
        roots = np.unique(labels, return_index=True)[1]
        levels, placed = [], np.zeros(n_vertices, dtype=bool)
        placed[roots] = True
        frontier = roots
        while len(frontier):
            counts = np.diff(adjacency.indptr)[frontier]
            begins = np.repeat(adjacency.indptr[frontier] - np.cumsum(counts) + counts, counts)
            places = begins + np.arange(counts.sum())
            level = Level(adjacency.indices[places], np.repeat(frontier, counts), adjacency.data[places] - 1)
            below = ~placed[level.children]
            level = Level(level.children[below], level.parents[below], level.edges[below])
            frontier = level.children
            placed[frontier] = True
            if len(frontier):
                levels.append(level)
        return cls(roots, tuple(levels))


def _refuse_cycle(n_vertices: int, edges: np.ndarray) -> None:
    """Join trees edge by edge until one edge finds its ends joined already."""
    parent = list(range(n_vertices))

    def root(vertex: int) -> int:
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    for number, (i, j) in enumerate(edges.tolist()):
        if root(i) == root(j):
            raise ValueError(
                f"edge {number} ({i}, {j}) closes a cycle, but a joint density of the posterior exists along forests "
                "only; draw a spanning forest of the graph first"
            )
        parent[root(i)] = root(j)
