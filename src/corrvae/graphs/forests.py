"""Maximal acyclic subgraphs: all of them for small graphs, a random one for any."""

import numpy as np
from jaxtyping import Bool, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.kernels import wilson
from corrvae.graphs.weights.pattern import split_into_pieces
from corrvae.graphs.weights.sample import neighbor_tables
from corrvae.monitor import Monitor, watch

_MOST_VERTICES = 2_000  # a dense determinant counts the forests before they are listed


def enumerate_forests(graph: CorrelationGraph, *, limit: int = 1_000_000) -> Bool[np.ndarray, "forests edges"]:
    """All maximal acyclic subgraphs of a small graph: one spanning tree in each component.

    Parameters
    ----------
    graph
        Its conductances do not matter here.
    limit
        The most forests to list; more raise a ``ValueError`` before any is listed.

    Returns
    -------
    numpy.ndarray
        A row for each forest, telling which edges it contains.

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
    n_trees = graph.n_components
    n_forest_edges = graph.n_vertices - n_trees
    forests: list[list[int]] = []
    # What is still to be tried: edges chosen so far, the next edge to decide on, and the tree of every vertex.
    stack: list[tuple[list[int], int, list[int]]] = [([], 0, list(range(graph.n_vertices)))]
    while stack:
        chosen, edge, tree_of = stack.pop()
        if len(chosen) == n_forest_edges:
            forests.append(chosen)
            continue
        i, j = (tree_of[v] for v in graph.edges[edge])
        if i == j or _can_span(tree_of, graph.edges[edge + 1 :], n_trees):  # else every forest needs this edge
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
    key = np.random.default_rng(random_state).integers(1, 2**63, size=1, dtype=np.uint64)
    pieces = split_into_pieces(graph)
    _, threshold, alias = neighbor_tables(pieces, graph.conductances)
    parent_entry = np.empty(pieces.n_vertices, np.int64)
    topological = np.empty(pieces.n_vertices, np.int32)
    stamp = np.full(pieces.n_vertices, -1, np.int64)
    lists = (pieces.pointers, pieces.neighbors)

    def draw(monitor: Monitor) -> None:
        order = wilson.walk_order(*lists, pieces.starts)
        wilson.sample_forest(
            *lists, threshold, alias, order, pieces.starts, key, parent_entry, topological, stamp, 0, monitor.control
        )
        monitor.check()

    watch(draw, progress=False)
    inside = pieces.edge_of[parent_entry[parent_entry >= 0]]
    return np.sort(np.concatenate([inside, np.flatnonzero(pieces.is_bridge)]))


def _can_span(tree_of: list[int], edges: Int[np.ndarray, "edges 2"], n_trees: int) -> bool:
    """Whether these edges join the trees into `n_trees`."""
    n = len(tree_of)
    i, j = np.asarray(tree_of)[edges].T
    n_found = connected_components(coo_array((np.ones(i.size), (i, j)), shape=(n, n)), directed=False)[0]
    return n_found - (n - len(set(tree_of))) == n_trees  # labels that no vertex bears count as components there


def _log_count_forests(graph: CorrelationGraph) -> float:
    """Logarithm of the number of maximal acyclic subgraphs, by the matrix tree theorem on each component."""
    laplacian = np.zeros((graph.n_vertices, graph.n_vertices))
    i, j = graph.edges.T
    laplacian[i, j] = laplacian[j, i] = -1.0
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    roots = np.unique(graph.components, return_index=True)[1]
    rest = np.delete(np.arange(graph.n_vertices), roots)
    return float(np.linalg.slogdet(laplacian[np.ix_(rest, rest)])[1])
