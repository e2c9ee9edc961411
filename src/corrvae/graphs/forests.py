"""Maximal acyclic subgraphs: random ones, rooted, and cut into pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Int, UInt

from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.progress import watch


def add_ground(graph: CorrelationGraph, conductance: float) -> tuple[CorrelationGraph, Bool[np.ndarray, " edges"]]:
    """Return the graph with one more vertex, the last, that is joined to all others, and which edges are the graph's.

    The spanning trees of it, without the edges of that vertex, are all acyclic subgraphs of the graph, each once for
    every choice of a root in each of its trees. The smaller the conductance, the more of them are maximal.

    Examples
    --------
    >>> path = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
    >>> joined, is_own = add_ground(path, 0.5)
    >>> joined, joined.edges[is_own].tolist()
    (CorrelationGraph(4 vertices, 5 edges, conductances), [[0, 1], [1, 2]])
    """
    n, own = graph.n_vertices, np.ones(graph.n_edges) if graph.conductances is None else graph.conductances
    places = np.searchsorted(graph.edges[:, 0], np.arange(n), side="right")
    edges = np.insert(graph.edges, places, np.column_stack([np.arange(n), np.full(n, n)]), axis=0)
    joined = CorrelationGraph(edges, n + 1, conductances=np.insert(own, places, conductance))
    return joined, edges[:, 1] < n


def sample_forest(
    graph: CorrelationGraph, random_state: int | np.random.Generator | None = None
) -> Int[np.ndarray, " forest_edges"]:
    """Draw a maximal acyclic subgraph, uniformly or in proportion to the product of its conductances.

    Returned are the sorted positions of its edges in ``graph.edges``. Wilson's algorithm takes the time of random walks
    to the vertex of highest degree, short in most graphs and quadratic in the length of long cycles.

    Examples
    --------
    >>> from corrvae import CorrelationGraph
    >>> graph = CorrelationGraph.from_edges([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])
    >>> forest = sample_forest(graph, random_state=0)
    >>> forest.size, 3 in forest  # the bridge is in every one
    (3, True)
    """
    key = np.random.default_rng(random_state).integers(1, 2**63, size=1, dtype=np.uint64)
    sampler = ForestSampler(graph)
    return np.sort(watch(lambda monitor: sampler.draw_edges(key, monitor.control), progress=False))


@final
@dataclass(frozen=True, eq=False)
class OrderedForest:
    """A rooted forest as an order of its vertices, breadth first, and the place of each one's parent; -1 for a root."""

    order: Int[np.ndarray, " vertices"]
    parents: Int[np.ndarray, " vertices"]

    @classmethod
    def of(cls, n_vertices: int, edges: Int[np.ndarray, "edges 2"]) -> "OrderedForest":
        """Root every tree at its first vertex; the edges must be a forest."""
        from corrvae.graphs.weights.kernels.adjacency import adjacency_lists, breadth_first

        tails, heads = (np.ascontiguousarray(ends, np.int32) for ends in edges.T)
        pointers, neighbors, _ = adjacency_lists(n_vertices, tails, heads)
        return cls(*breadth_first(pointers, neighbors, np.arange(n_vertices))[:2])


@final
class ForestPieces:
    """A forest cut into blocks of at most `block_size` vertices, and the blocks packed into pieces of bounded size.

    A piece has at most `piece_size` vertices of its own (by default as a block), and again as many in the blocks above
    these. Vertices that are marked as `stays` stay in the block of their parent whatever its size.
    """

    def __init__(
        self,
        forest: OrderedForest,
        block_size: int,
        *,
        piece_size: int | None = None,
        stays: Bool[np.ndarray, " vertices"] | None = None,
    ) -> None:
        from corrvae.graphs.weights.kernels.adjacency import cut_into_blocks, pack_blocks

        self._forest = forest
        stays = np.zeros(len(forest.order), bool) if stays is None else stays[forest.order]
        self._blocks, self._above = cut_into_blocks(forest.parents, block_size, stays)
        self._pieces = pack_blocks(self._blocks, self._above, block_size if piece_size is None else piece_size)
        self.n_pieces = int(self._pieces[-1]) + 1
        self.n_cut = int(np.count_nonzero(self._above >= 0))

    def at(self, number: int) -> "ForestPiece":
        """Return a piece."""
        mine = np.flatnonzero(self._pieces == number)
        is_mine = self._pieces[self._blocks] == number
        needed = np.zeros(len(self._above) + 1, bool)  # the last entry stands for no block
        needed[self._above[mine]] = needed[mine] = True
        needed[-1] = False
        places = np.flatnonzero(needed[self._blocks])
        parents = self._forest.parents[places]
        where = np.searchsorted(places, parents)
        is_cut = (parents >= 0) & (self._blocks[parents] != self._blocks[places])
        own = is_mine[places]
        return ForestPiece(
            vertices=self._forest.order[places],
            own=own,
            parents=np.where(is_cut | (parents < 0), -1, where).astype(np.int32),
            cut=np.column_stack([np.flatnonzero(is_cut & own), where[is_cut & own]]),
        )


@final
@dataclass(frozen=True, eq=False)
class ForestPiece:
    """Some blocks of a forest, and the blocks above them; vertices are in order, parents before children.

    `own` marks those of the piece. `parents` are places in the same block, -1 for its root; `cut` are the places of the
    two ends of each edge between a block of the piece and the one above.
    """

    vertices: Int[np.ndarray, " vertices"]
    own: Bool[np.ndarray, " vertices"]
    parents: Int[np.ndarray, " vertices"]
    cut: Int[np.ndarray, "cut 2"]


@final
class ForestSampler:
    """Draws maximal acyclic subgraphs of one graph; what they have in common is prepared once."""

    def __init__(self, graph: CorrelationGraph) -> None:
        from corrvae.graphs.weights.pattern import split_into_pieces
        from corrvae.graphs.weights.sample import neighbor_tables, walk_order

        self.graph = graph
        self._pieces = split_into_pieces(graph)
        self._bridges = np.flatnonzero(self._pieces.is_bridge)
        self.is_forest = len(self._bridges) == graph.n_edges
        self._order = walk_order(self._pieces)
        self._tables = neighbor_tables(self._pieces, graph.conductances)[1:]

    def draw(self, key: int | Sequence[int]) -> OrderedForest:
        """Draw a forest; the same for the same key."""
        if self.is_forest:
            return self._only
        state = np.random.SeedSequence(key).generate_state(1, np.uint64) | np.uint64(1)  # 0 would draw nothing but 0
        return self._order_edges(self.draw_edges(state, np.zeros(2, np.int64)))

    def draw_edges(self, state: UInt[np.ndarray, "1"], control: Int[np.ndarray, "2"]) -> Int[np.ndarray, " edges"]:
        """Draw the positions of a forest's edges, in no order; ``control[0] = 1`` makes the kernel stop."""
        from corrvae.graphs.weights.kernels.wilson import sample_forest

        n = self._pieces.n_vertices
        parent_entry, topological = np.empty(n, np.int64), np.empty(n, np.int32)
        stamp = np.full(n, -1, np.int64)
        sample_forest(self._pieces, *self._tables, self._order, state, parent_entry, topological, stamp, 0, control)
        return np.concatenate([self._pieces.edge_of[parent_entry[parent_entry >= 0]], self._bridges])

    @cached_property
    def _only(self) -> OrderedForest:
        return self._order_edges(self._bridges)

    def _order_edges(self, edges: Int[np.ndarray, " edges"]) -> OrderedForest:
        return OrderedForest.of(self.graph.n_vertices, self.graph.edges[edges])
