"""Maximal acyclic subgraphs: all of them for small graphs, a random one for any, and the levels of a rooted one."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Int, UInt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.plan import dense_weights
from corrvae.graphs.weights.progress import watch


def enumerate_forests(graph: CorrelationGraph, *, limit: int = 1_000_000) -> Bool[np.ndarray, "forests edges"]:
    """Return all maximal acyclic subgraphs of a small graph, a row for each: one spanning tree in each component.

    More than `limit` of them raise a ``ValueError`` before any is listed.

    Examples
    --------
    >>> from corrvae import CorrelationGraph
    >>> triangle = CorrelationGraph.from_edges([("a", "b"), ("a", "c"), ("b", "c")])
    >>> enumerate_forests(triangle).astype(int)
    array([[1, 1, 0],
           [1, 0, 1],
           [0, 1, 1]])
    """
    log_count = dense_weights(graph)[1] if graph.n_edges else 0.0
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


def forest_levels(
    n_vertices: int, edges: Int[np.ndarray, "edges 2"]
) -> Iterator[tuple[Int[np.ndarray, " level"], Int[np.ndarray, " level"], Int[np.ndarray, " level"]]]:
    """Yield, from the roots down, the vertices of each depth, their parents, and which edges join them.

    Every tree of the forest has its first vertex as root, and vertices are in the order of a search breadth first. An
    edge that closes a cycle raises a ValueError.
    """
    trees = coo_array((np.ones(len(edges)), edges.T), shape=(n_vertices, n_vertices))
    n_trees, labels = connected_components(trees, directed=False)
    if len(edges) != n_vertices - n_trees:
        number = bisect_left(range(len(edges)), True, key=lambda k: _has_cycle(n_vertices, edges[: k + 1]))
        i, j = edges[number].tolist()
        raise ValueError(
            f"edge {number} ({i}, {j}) closes a cycle, but a joint density exists along forests only; draw a "
            "spanning forest of the graph first, with corrvae.graphs.sample_forest"
        )
    roots = np.unique(labels, return_index=True)[1]
    above = np.column_stack([np.full(n_trees, n_vertices), roots])  # one more vertex, above all roots
    joined = np.concatenate([edges, above]).T
    tree = coo_array((np.ones(n_vertices), joined), shape=(n_vertices + 1, n_vertices + 1))
    order, parents = breadth_first_order(tree, n_vertices, directed=False)
    is_second = parents[edges[:, 1]] == edges[:, 0]
    edge_of = np.empty(n_vertices, np.int64)
    edge_of[np.where(is_second, edges[:, 1], edges[:, 0])] = np.arange(len(edges))
    place = np.argsort(order)[parents[order[1:]]]  # of each one's parent
    begin = n_trees + 1
    while begin <= n_vertices:
        end = 1 + int(np.searchsorted(place, begin))
        level = order[begin:end]
        yield level, parents[level], edge_of[level]
        begin = end


def _has_cycle(n_vertices: int, edges: np.ndarray) -> bool:
    adjacency = coo_array((np.ones(len(edges)), edges.T), shape=(n_vertices, n_vertices))
    return connected_components(adjacency, directed=False)[0] > n_vertices - len(edges)


def _can_span(tree_of: list[int], edges: np.ndarray, n_trees: int) -> bool:
    """Return whether these edges join the trees into `n_trees`."""
    n = len(tree_of)
    i, j = np.asarray(tree_of)[edges].T
    n_found = connected_components(coo_array((np.ones(i.size), (i, j)), shape=(n, n)), directed=False)[0]
    return n_found - (n - len(set(tree_of))) == n_trees  # labels that no vertex has count as components there
