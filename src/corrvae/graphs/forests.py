"""Maximal acyclic subgraphs: all of them for small graphs, a random one for any, and the levels of a rooted one."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from corrvae.graphs.edges import index_pairs
from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.progress import watch

_MOST_VERTICES = 2_000  # a dense determinant counts the forests before they are listed


def enumerate_forests(graph: CorrelationGraph, *, limit: int = 1_000_000) -> Bool[np.ndarray, "forests edges"]:
    """Return all maximal acyclic subgraphs of a small graph: one spanning tree in each component.

    Parameters
    ----------
    graph
        Its conductances do not matter here.
    limit
        The most forests to list; more raise a ``ValueError`` before any is listed.

    Returns
    -------
    numpy.ndarray
        A row for each forest, which marks the edges it contains.

    Examples
    --------
    >>> from corrvae import CorrelationGraph
    >>> triangle = CorrelationGraph.from_edges([("a", "b"), ("a", "c"), ("b", "c")])
    >>> enumerate_forests(triangle).astype(int)
    array([[1, 1, 0],
           [1, 0, 1],
           [0, 1, 1]])
    """
    if graph.n_vertices > _MOST_VERTICES:
        raise ValueError(
            f"forests are listed up to {_MOST_VERTICES:,} vertices, and the graph has {graph.n_vertices:,}"
        )
    log_count = _log_count_forests(graph)
    if log_count > np.log(limit) + 1e-6:
        many = f"{np.exp(log_count):,.0f}" if log_count < np.log(1e9) else f"10^{log_count / np.log(10):.0f}"
        raise ValueError(f"the graph has about {many} maximal acyclic subgraphs, more than limit={limit:,}")
    n_forest_edges = graph.n_vertices - graph.n_connected
    forests: list[list[int]] = []
    # Depth-first: the edges chosen so far, the next edge to decide on, and the tree of every vertex.
    stack: list[tuple[list[int], int, list[int]]] = [([], 0, list(range(graph.n_vertices)))]
    while stack:
        chosen, edge, tree_of = stack.pop()
        if len(chosen) == n_forest_edges:
            forests.append(chosen)
            continue
        i, j = (tree_of[v] for v in graph.edges[edge])
        if i == j or _can_span(tree_of, graph.edges[edge + 1 :], graph.n_connected):  # else this edge is needed
            stack.append((chosen, edge + 1, tree_of))
        if i != j:
            stack.append(([*chosen, edge], edge + 1, [i if tree == j else tree for tree in tree_of]))
    rows = np.zeros((len(forests), graph.n_edges), bool)
    for row, forest in zip(rows, forests, strict=True):
        row[forest] = True
    return rows


def sample_forest(
    graph: CorrelationGraph, random_state: int | np.random.Generator | None = None
) -> Int[np.ndarray, " forest_edges"]:
    """Draw a maximal acyclic subgraph, uniformly or in proportion to the product of its conductances.

    By Wilson's algorithm: the time is that of random walks to the vertex of highest degree, short in most graphs and
    quadratic in the length of long cycles.

    Parameters
    ----------
    graph
        Connected or not.
    random_state
        Seed or generator.

    Returns
    -------
    numpy.ndarray
        Positions of the forest's edges in ``graph.edges``, sorted.

    Examples
    --------
    >>> from corrvae import CorrelationGraph
    >>> graph = CorrelationGraph.from_edges([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])
    >>> forest = sample_forest(graph, random_state=0)
    >>> forest.size, 3 in forest  # the bridge is in every one
    (3, True)
    """
    from corrvae.graphs.weights.pattern import split_into_pieces
    from corrvae.graphs.weights.sample import draw_forest

    key = np.random.default_rng(random_state).integers(1, 2**63, size=1, dtype=np.uint64)
    pieces = split_into_pieces(graph)
    inside = watch(lambda monitor: draw_forest(pieces, graph.conductances, key, monitor), progress=False)
    return np.sort(np.concatenate([inside, np.flatnonzero(pieces.is_bridge)]))


@final
@dataclass(frozen=True, eq=False)
class Level:
    """The vertices at one depth of a rooted forest, their parents, and the edges (rows of its list) between them."""

    children: Int[np.ndarray, " level"]
    parents: Int[np.ndarray, " level"]
    edges: Int[np.ndarray, " level"]


@final
@dataclass(frozen=True, eq=False)
class RootedForest:
    """A forest with a root in every tree, level by level: each point can be drawn given its parent.

    Attributes
    ----------
    roots
        The first vertex of each tree; an isolated vertex is a tree.
    levels
        The other vertices by depth.
    """

    roots: Int[np.ndarray, " trees"]
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, n_vertices: int, edges: Int[np.ndarray, "edges 2"]) -> "RootedForest":
        """Root a forest given by vertex indices; raise ValueError at the edge that closes a cycle.

        Examples
        --------
        >>> forest = RootedForest.of(4, np.array([[1, 0], [1, 2]]))
        >>> forest.roots, [level.children for level in forest.levels]
        (array([0, 3]), [array([1]), array([2])])
        """
        edges = index_pairs(edges, n_vertices)
        ends = np.concatenate([edges, edges[:, ::-1]]).T
        # Edge numbers from 1 on, since a stored zero would not count as an entry.
        numbers = np.tile(np.arange(1, len(edges) + 1), 2)
        adjacency = coo_array((numbers, (ends[0], ends[1])), shape=(n_vertices, n_vertices)).tocsr()
        n_trees, labels = connected_components(adjacency, directed=False)
        if len(edges) != n_vertices - n_trees:
            _raise_at_cycle(n_vertices, edges)
        roots = np.unique(labels, return_index=True)[1]
        levels, placed = [], np.zeros(n_vertices, dtype=bool)
        frontier = roots
        while len(frontier):
            placed[frontier] = True
            counts = np.diff(adjacency.indptr)[frontier]
            begins = np.repeat(adjacency.indptr[frontier] - np.cumsum(counts) + counts, counts)
            entries = begins + np.arange(counts.sum())
            below = ~placed[adjacency.indices[entries]]
            parents, entries = np.repeat(frontier, counts)[below], entries[below]
            frontier = adjacency.indices[entries]
            if len(frontier):
                levels.append(Level(frontier, parents, adjacency.data[entries] - 1))
        return cls(roots, tuple(levels))


def _raise_at_cycle(n_vertices: int, edges: np.ndarray) -> None:
    tree_of = list(range(n_vertices))

    def root(vertex: int) -> int:
        while tree_of[vertex] != vertex:
            tree_of[vertex] = vertex = tree_of[tree_of[vertex]]
        return vertex

    for number, (i, j) in enumerate(edges.tolist()):
        if root(i) == root(j):
            raise ValueError(
                f"edge {number} ({i}, {j}) closes a cycle, but a joint density exists along forests only; draw a "
                "spanning forest of the graph first, with corrvae.graphs.sample_forest"
            )
        tree_of[root(i)] = root(j)


def _can_span(tree_of: list[int], edges: np.ndarray, n_trees: int) -> bool:
    """Return whether these edges join the trees into `n_trees`."""
    n = len(tree_of)
    i, j = np.asarray(tree_of)[edges].T
    n_found = connected_components(coo_array((np.ones(i.size), (i, j)), shape=(n, n)), directed=False)[0]
    return n_found - (n - len(set(tree_of))) == n_trees  # labels that no vertex has count as components there


def _log_count_forests(graph: CorrelationGraph) -> float:
    """Return the logarithm of the number of forests, by the matrix tree theorem on each component."""
    laplacian = np.zeros((graph.n_vertices, graph.n_vertices))
    i, j = graph.edges.T
    laplacian[i, j] = laplacian[j, i] = -1.0
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    roots = np.unique(graph.components, return_index=True)[1]
    rest = np.delete(np.arange(graph.n_vertices), roots)
    return float(np.linalg.slogdet(laplacian[np.ix_(rest, rest)])[1])
