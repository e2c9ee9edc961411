"""What the spanning weights need to know of a graph besides its conductances.

A bridge is in every maximal acyclic subgraph, and removing it changes no other weight: bridges get weight 1 and are
dropped. What is left falls into pieces, and each piece is ordered for elimination.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.kernels.adjacency import adjacency_lists, find_bridges, label_pieces, peel_leaves
from corrvae.graphs.weights.kernels.ordering import minimum_degree
from corrvae.graphs.weights.kernels.symbolic import Structure, later_neighbors, supernode_tails
from corrvae.monitor import Monitor

_HUB_FACTOR = 10.0
_STOP_RATIO = 0.5
_BYTES_A_VERTEX = 140
_BYTES_AN_EDGE = 90


@dataclass(frozen=True)
class Pieces:
    """The graph without its bridges, relabelled so that each connected piece is a run of consecutive vertices.

    Attributes
    ----------
    is_bridge
        Of each edge of the graph.
    kept
        Edges that are not bridges.
    pointers, neighbors, edge_of
        Adjacency lists of the relabelled vertices; `edge_of` counts in the graph's edges.
    starts
        First vertex of each piece, closed by the number of vertices.
    """

    is_bridge: Bool[np.ndarray, " edges"]
    kept: Int[np.ndarray, " kept"]
    pointers: Int[np.ndarray, " vertices_and_one"]
    neighbors: Int[np.ndarray, " entries"]
    edge_of: Int[np.ndarray, " entries"]
    starts: Int[np.ndarray, " pieces_and_one"]

    @property
    def n_vertices(self) -> int:
        """Vertices that have an edge left."""
        return int(self.starts[-1])


@dataclass(frozen=True)
class Ordering:
    """The order in which the pieces are eliminated: see `minimum_degree` for the fields."""

    order: Int[np.ndarray, " vertices"]
    pivot_starts: Int[np.ndarray, " pivots"]
    pivot_sizes: Int[np.ndarray, " pivots"]
    pivot_tails: Int[np.ndarray, " pivots"]
    piece_pivots: Int[np.ndarray, " pieces_and_one"]
    piece_hubs: Int[np.ndarray, " pieces"]
    piece_ordered: Int[np.ndarray, " pieces"]


def split_into_pieces(graph: CorrelationGraph) -> Pieces:
    """Drop the bridges and relabel what is left piece by piece."""
    n = graph.n_vertices
    if _is_forest(graph):
        return _nothing_left(graph.n_edges)
    tails = np.ascontiguousarray(graph.edges[:, 0], np.int32)
    heads = np.ascontiguousarray(graph.edges[:, 1], np.int32)
    is_bridge = peel_leaves(n, tails, heads)
    kept = np.flatnonzero(~is_bridge)
    pointers, neighbors, edge_of = adjacency_lists(n, tails[kept], heads[kept])
    inner = find_bridges(n, pointers, neighbors, edge_of)
    if inner.any():
        is_bridge[kept[inner]] = True
        kept = kept[~inner]
        pointers, neighbors, _ = adjacency_lists(n, tails[kept], heads[kept])
    label, starts = label_pieces(n, pointers, neighbors)
    pointers, neighbors, edge_of = adjacency_lists(int(starts[-1]), label[tails[kept]], label[heads[kept]])
    return Pieces(is_bridge, kept, pointers, neighbors, kept[edge_of], starts)


def _is_forest(graph: CorrelationGraph) -> bool:
    # A vertex joined to at most one before it closes no cycle: trees that grew vertex by vertex are known at sight.
    if graph.n_edges == 0 or np.bincount(graph.edges[:, 1]).max() == 1:
        return True
    return graph.n_edges < graph.n_vertices and graph.n_edges == graph.n_vertices - graph.n_components


def _nothing_left(n_edges: int) -> Pieces:
    none, zero = np.empty(0, np.int64), np.zeros(1, np.int64)
    return Pieces(np.ones(n_edges, np.bool_), none, zero, none, none, zero)


def order_pieces(
    pieces: Pieces,
    monitor: Monitor,
    *,
    degree_limit: float = np.inf,
    work_limit: float = np.inf,
    core_limit: float = 0.0,
) -> Ordering:
    """Order every piece by minimum degree, up to the limits explained in `minimum_degree`."""
    monitor.phase("ordering", pieces.n_vertices)
    limits = (_HUB_FACTOR, _STOP_RATIO, float(degree_limit), float(work_limit), float(core_limit))
    fields = minimum_degree(pieces.pointers, pieces.neighbors, pieces.starts, *limits, monitor.control)
    monitor.check()
    return Ordering(*fields)


def build_structure(
    pieces: Pieces,
    ordering: Ordering,
    chosen: Int[np.ndarray, " chosen"],
    n_eliminated: Int[np.ndarray, " chosen"],
    monitor: Monitor,
) -> Structure:
    """Pattern of the elimination of the first `n_eliminated[i]` pivots of piece `chosen[i]`, cores last."""
    monitor.phase("analysing")
    piece_begin, piece_end = pieces.starts[chosen], pieces.starts[chosen + 1]
    pivot_begin = ordering.piece_pivots[chosen]
    pivots = _ranges(pivot_begin, n_eliminated)
    ends = np.cumsum(ordering.pivot_sizes[pivots])
    starts = ends - ordering.pivot_sizes[pivots]
    sizes = np.diff(
        np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(n_eliminated)])]
    )  # eliminated of a piece
    eliminated = _ranges(piece_begin, sizes)
    core = _ranges(piece_begin + sizes, piece_end - piece_begin - sizes)
    order = ordering.order[np.concatenate([eliminated, core])]

    later = later_neighbors(order, pieces.pointers, pieces.neighbors, pieces.edge_of, pieces.n_vertices)
    tail_pointers, tails, columns = supernode_tails(starts, ends, later[0], later[1], order.size, monitor.control)
    monitor.check()
    return Structure(starts, ends, tail_pointers, tails, columns, *later, eliminated.size)


def pattern_bytes(graph: CorrelationGraph) -> int:
    """Memory that the analysis itself takes, for the graph's size."""
    return _BYTES_A_VERTEX * graph.n_vertices + _BYTES_AN_EDGE * graph.n_edges


def _ranges(begin: Int[np.ndarray, " n"], count: Int[np.ndarray, " n"]) -> Int[np.ndarray, " total"]:
    """Concatenate ``arange(begin[i], begin[i] + count[i])``."""
    if count.size == 0:
        return np.zeros(0, np.int64)
    offsets = np.cumsum(count) - count
    return np.repeat(begin - offsets, count) + np.arange(int(count.sum()))
