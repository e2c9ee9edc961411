"""What the spanning weights need to know of a graph besides its conductances.

A bridge is in every maximal acyclic subgraph, and removing it changes no other weight: bridges get weight 1 and are
dropped. What is left falls into pieces, and each piece is ordered for elimination.
"""

import numpy as np
from jaxtyping import Int

from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.kernels.adjacency import Pieces, adjacency_lists, breadth_first, find_bridges
from corrvae.graphs.weights.kernels.elimination import Structure, supernode_tails
from corrvae.graphs.weights.kernels.ordering import Ordering, minimum_degree
from corrvae.graphs.weights.progress import Monitor

_HUB_FACTOR = 10.0
_STOP_RATIO = 0.5


def split_into_pieces(graph: CorrelationGraph) -> Pieces:
    """Drop the bridges and relabel the rest piece by piece."""
    n = graph.n_vertices
    if _is_forest(graph):
        none, zero = np.empty(0, np.int64), np.zeros(1, np.int64)
        return Pieces(np.ones(graph.n_edges, np.bool_), none, zero, none.astype(np.int32), none, zero)
    tails = np.ascontiguousarray(graph.edges[:, 0], np.int32)
    heads = np.ascontiguousarray(graph.edges[:, 1], np.int32)
    is_bridge = find_bridges(n, *adjacency_lists(n, tails, heads))
    kept = np.flatnonzero(~is_bridge)
    pointers, neighbors, _ = adjacency_lists(n, tails[kept], heads[kept])
    order, _, starts = breadth_first(pointers, neighbors, np.flatnonzero(np.diff(pointers)))
    label = np.empty(n, np.int32)
    label[order] = np.arange(order.size)
    pointers, neighbors, edge_of = adjacency_lists(order.size, label[tails[kept]], label[heads[kept]])
    return Pieces(is_bridge, kept, pointers, neighbors, kept[edge_of], starts)


def _is_forest(graph: CorrelationGraph) -> bool:
    # A vertex joined to at most one before it closes no cycle: trees that grew vertex by vertex are found at once.
    if graph.n_edges == 0 or np.bincount(graph.edges[:, 1]).max() == 1:
        return True
    return graph.n_edges < graph.n_vertices and graph.n_edges == graph.n_vertices - graph.n_connected


def order_pieces(
    pieces: Pieces, monitor: Monitor, degree_limit: float = np.inf, work_limit: float = np.inf, core_limit: float = 0.0
) -> Ordering:
    """Order every piece by minimum degree, up to the limits explained in `minimum_degree`."""
    monitor.phase("ordering", pieces.n_vertices)
    ordering = minimum_degree(
        pieces.pointers,
        pieces.neighbors,
        pieces.starts,
        _HUB_FACTOR,
        _STOP_RATIO,
        float(degree_limit),
        float(work_limit),
        float(core_limit),
        monitor.control,
    )
    monitor.check()
    return ordering


def build_structure(
    pieces: Pieces,
    ordering: Ordering,
    chosen: Int[np.ndarray, " chosen"],
    n_eliminated: Int[np.ndarray, " chosen"],
    monitor: Monitor,
) -> Structure:
    """Return the pattern of eliminating the first `n_eliminated[i]` pivots of piece `chosen[i]`, cores last."""
    monitor.phase("analysing")
    piece_begin, piece_end = pieces.starts[chosen], pieces.starts[chosen + 1]
    pivots = _ranges(ordering.piece_pivots[chosen], n_eliminated)
    ends = np.cumsum(ordering.pivot_sizes[pivots])
    starts = ends - ordering.pivot_sizes[pivots]
    n_before = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(n_eliminated)])]
    sizes = np.diff(n_before)  # eliminated vertices of each piece
    eliminated = _ranges(piece_begin, sizes)
    core = _ranges(piece_begin + sizes, piece_end - piece_begin - sizes)
    order = ordering.order[np.concatenate([eliminated, core])]

    later_pointers, later_rows, later_edges = later_neighbors(
        order, pieces.pointers, pieces.neighbors, pieces.edge_of, pieces.n_vertices
    )
    tail_pointers, tails, columns = supernode_tails(
        starts, ends, later_pointers, later_rows, order.size, monitor.control
    )
    monitor.check()
    return Structure(
        starts, ends, tail_pointers, tails, columns, later_pointers, later_rows, later_edges, first=eliminated.size
    )


def later_neighbors(
    order: np.ndarray, pointers: np.ndarray, neighbors: np.ndarray, edge_of: np.ndarray, n_vertices: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each position of `order`, the later positions it is joined to and the edges that do so."""
    position, counts = np.empty(n_vertices, np.int32), np.diff(pointers)[order]
    position[order] = np.arange(order.size)
    entries, own = _ranges(pointers[order], counts), np.repeat(np.arange(order.size), counts)
    rows = position[neighbors[entries]]
    later = rows > own
    later_pointers = np.concatenate([[0], np.cumsum(np.bincount(own[later], minlength=order.size))])
    return later_pointers, rows[later], edge_of[entries[later]]


def _ranges(begin: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Concatenate ``arange(begin[i], begin[i] + count[i])``."""
    if count.size == 0:
        return np.zeros(0, np.int64)
    offsets = np.cumsum(count) - count
    return np.repeat(begin - offsets, count) + np.arange(int(count.sum()))
