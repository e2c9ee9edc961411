"""What a model is trained on, and what one step draws from it.

The draws of a step depend on the seed and the number of the step alone. So a checkpoint needs no generator's state, a
resumed run draws the same, and several workers draw the same batch and share it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import sparse
from torch import Tensor

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.forests import ForestPiece, ForestSampler, OrderedForest
from corrvae.model.adaptive import ForestWeights
from corrvae.nn import FeatureTable, Rows

Augment = Callable[[np.ndarray, np.random.Generator], np.ndarray | sparse.csr_array | sparse.csr_matrix]


@final
class Shuffled:
    """Batches of distinct indices: each epoch is a shuffle of all, cut into batches.

    Each batch by itself is a uniform draw without replacement. What is left at the end of an epoch, too little for a
    batch, is not drawn in it. With `n_pieces` nothing is left: each epoch is cut into so many batches.
    """

    def __init__(self, count: int, batch: int, seed: tuple[int, ...], *, n_pieces: int | None = None) -> None:
        self.count = count
        self.per_epoch = n_pieces or max(1, count // max(1, min(batch, count)))
        self.batch = min(batch, count) if n_pieces is None else None
        # The mean over the count is the mean over batches of this times the sum over a batch.
        self.scale = 1.0 / max(1, self.batch) if self.batch is not None else self.per_epoch / max(1, count)
        self._seed, self._epoch, self._order = seed, -1, np.empty(0, np.int64)

    def at(self, step: int) -> Int[np.ndarray, " batch"]:
        """Return the indices of a step."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, np.random.default_rng((*self._seed, epoch)).permutation(self.count)
        if self.batch is not None:
            return self._order[place * self.batch : (place + 1) * self.batch]
        bounds = np.linspace(0, self.count, self.per_epoch + 1).astype(np.int64)
        return self._order[bounds[place] : bounds[place + 1]]


@final
@dataclass(frozen=True, eq=False)
class TrainingData:
    """Features and edges, and how a step draws from them.

    `edges` are pairs of rows; ``None`` trains without a graph. `weights` are spanning weights, ``None`` for 1, which is
    right for a forest; `conductances` are for families that draw forests; `adapted` is the distribution over forests
    that both follow, if they are adapted to the posterior. `sample_weights` have mean 1. `n_bare` vertices without a
    row come after the rows. `augment` draws the features of rows again each time, and the table's own entries are not
    read then. A step draws `batch_size` vertices and `edge_batch_size` edges (B1, B2), and at most `max_pairs` pairs
    for the non-edge term; with `n_pieces` all are gone through in so many steps instead. `as_inferred`: the objective
    is to be the bound of posteriors as they are inferred, if training has another.
    """

    table: FeatureTable
    edges: Int[np.ndarray, "edges 2"] | None = None
    weights: Float[np.ndarray, " edges"] | None = None
    sample_weights: Float[np.ndarray, " vertices"] | None = None
    conductances: Float[np.ndarray, " edges"] | None = None
    n_bare: int = 0
    adapted: ForestWeights | None = None
    augment: Augment | None = None
    batch_size: int = 64
    edge_batch_size: int = 256
    max_pairs: int | None = None
    n_pieces: int | None = None
    as_inferred: bool = False
    seed: int = 0

    @property
    def n_vertices(self) -> int:
        """Number of rows."""
        return self.table.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return 0 if self.edges is None else len(self.edges)

    @property
    def graph(self) -> CorrelationGraph:
        """The graph of all rows and of the vertices without one."""
        edges = np.empty((0, 2), np.int64) if self.edges is None else self.edges
        return CorrelationGraph(edges, self.n_vertices + self.n_bare, conductances=self.conductances)

    def adapt(self, found: ForestWeights) -> "TrainingData":
        """Return the same data under another distribution over forests."""
        return replace(self, weights=found.weights, conductances=found.conductances, adapted=found)

    @cached_property
    def vertex_draws(self) -> Shuffled:
        """The vertices of each step."""
        return Shuffled(self.n_vertices, self.batch_size, (self.seed, 0), n_pieces=self.n_pieces)

    @cached_property
    def edge_draws(self) -> Shuffled:
        """The edges of each step, as positions in `edges`."""
        return Shuffled(self.n_edges, self.edge_batch_size, (self.seed, 1), n_pieces=self.n_pieces)

    @cached_property
    def forests(self) -> ForestSampler:
        """The forests of the graph."""
        return ForestSampler(self.graph)

    @property
    def forest_cost(self) -> tuple[float, float] | None:
        """KL of the adapted distribution over forests, per row, and how much it counts: 1 / eta."""
        if self.adapted is None or self.adapted.eta == 0.0:
            return None
        return self.adapted.divergence / self.n_vertices, 1.0 / self.adapted.eta

    def draw_piece(self, step: int, piece: ForestPiece, n_pieces: int) -> "Batch":
        """Return a piece of a forest as a batch; the mean over all pieces is the whole forest."""
        has_row = piece.vertices < self.n_vertices
        arranged = np.lexsort((~piece.own, ~has_row))  # rows first, and of these the piece's own
        vertices, own = piece.vertices[arranged], piece.own[arranged]
        place = np.empty_like(arranged)
        place[arranged] = np.arange(len(arranged))
        n_drawn = int(np.count_nonzero(piece.own & has_row))
        scale = n_pieces / self.n_vertices
        weights = np.full(n_drawn, scale, np.float32)
        if self.sample_weights is not None:
            weights *= self.sample_weights[vertices[:n_drawn]].astype(np.float32)
        return Batch(
            rows=self.rows(vertices[: np.count_nonzero(has_row)], step),
            vertices=vertices,
            n_drawn=n_drawn,
            drawn=slice(0, n_drawn),
            vertex_weights=torch.from_numpy(weights),
            edges=torch.from_numpy(place[piece.cut]),
            edge_weights=torch.full((len(piece.cut),), scale),
            forest=OrderedForest(place, piece.parents),
            forest_weights=torch.from_numpy(np.where(own, scale, 0.0).astype(np.float32)),
            is_inferred=self.as_inferred,
            forest_cost=self.forest_cost,
        )

    def generator(self, step: int) -> np.random.Generator:
        """Return the generator of whatever else a step draws."""
        return np.random.default_rng((self.seed, 2, step))

    def draw(self, step: int) -> "Batch":
        """Draw vertices and, with a graph, edges."""
        drawn = self.vertex_draws.at(step)
        weights = np.full(len(drawn), self.vertex_draws.scale, np.float32)
        if self.sample_weights is not None:
            weights *= self.sample_weights[drawn].astype(np.float32)
        vertices, positions, edge_weights = drawn, None, None
        if self.edges is not None:
            picked = self.edge_draws.at(step)
            vertices, positions = number_vertices(drawn, self.edges[picked])
            edge_weights = np.full(len(picked), self.edge_draws.scale * self.n_edges / self.n_vertices)
            if self.weights is not None:
                edge_weights *= self.weights[picked]
        return Batch(
            rows=self.rows(vertices, step),
            vertices=vertices,
            n_drawn=len(drawn),
            drawn=slice(0, len(drawn)),
            vertex_weights=torch.from_numpy(weights),
            edges=None if positions is None else torch.from_numpy(positions),
            edge_weights=None if edge_weights is None else torch.from_numpy(edge_weights.astype(np.float32)),
            forest_cost=self.forest_cost,
        )

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """The graph as a symmetric matrix."""
        edges = np.empty((0, 2), np.int64) if self.edges is None else self.edges
        both = np.concatenate([edges, edges[:, ::-1]])
        return sparse.csr_array((np.ones(len(both), np.int8), both.T), shape=(self.n_vertices, self.n_vertices))

    def exclude(self, batch: "Batch", *, disjoint: bool) -> Bool[Tensor, "edges edges"]:
        """Return which first ends of a batch's edges do not compete for which second ends.

        A point and its neighbours do not, except along the edge itself. If `disjoint`, points that have a feature in
        common do not either.
        """
        first, second = batch.edges.T  # pyright: ignore[reportOptionalMemberAccess]
        left, right = batch.vertices[first.numpy()], batch.vertices[second.numpy()]
        excluded = torch.from_numpy((self.adjacency[left][:, right].toarray() != 0) | (left[:, None] == right))
        if disjoint:
            present = batch.rows.map(lambda values: (values != 0).to(values.dtype)).dense()
            excluded |= present[first] @ present[second].T > 0
        return excluded.fill_diagonal_(False)

    def draw_pairs(self, step: int, n_drawn: int, n_pairs: int | None) -> Int[np.ndarray, "pairs 2"]:
        """Draw pairs i < j of the drawn vertices for the non-edge term: all of them, or so many with replacement."""
        every = n_drawn * (n_drawn - 1) // 2
        wanted = min(every, *(limit for limit in (n_pairs, self.max_pairs) if limit is not None), every)
        if wanted == every:
            return np.stack(np.triu_indices(n_drawn, 1), axis=1)
        generator = self.generator(step)
        first = generator.integers(0, n_drawn, wanted)
        second = generator.integers(0, n_drawn - 1, wanted)
        return np.stack([first, second + (second >= first)], axis=1)

    def rows(self, vertices: Int[np.ndarray, " vertices"], step: int) -> Rows:
        """Return the features of vertices, drawn anew for this step if there is `augment`."""
        if self.augment is None:
            return self.table.rows(vertices)
        # a stream of its own: which pairs are drawn must not depend on what their features are
        features = self.augment(vertices, np.random.default_rng((self.seed, 4, step)))
        expected = (len(vertices), self.table.shape[1])
        if features.shape != expected:
            raise ValueError(f"augment returned features of shape {features.shape} instead of {expected}")
        drawn = FeatureTable(features, missing=self.table.missing, scaling=self.table.scaling)
        return drawn.rows(np.arange(len(vertices)))


def number_vertices(
    drawn: Int[np.ndarray, " drawn"], edges: Int[np.ndarray, "edges 2"]
) -> tuple[Int[np.ndarray, " distinct"], Int[np.ndarray, "edges 2"]]:
    """Return the distinct vertices, the drawn ones first, and the positions of the edges' ends among them."""
    found, first, places = np.unique(np.concatenate([drawn, edges.reshape(-1)]), return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    return found[order], numbers[places[len(drawn) :]].reshape(-1, 2)


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """The draws of one step. Each distinct vertex is encoded once, whatever its roles.

    `rows` are features of the distinct `vertices`, of which the first `n_drawn` were drawn for the singleton terms.
    `drawn` are those evaluated here: all, or the share of one worker. `vertex_weights` make the sum over them an
    estimate of the mean over all vertices, `edge_weights` the sum of T over `edges` (positions in `rows`) one of (1/n)
    sum_e w_e T_e, and `pair_weight` the sum of I over `pairs` one of (2/n^2) sum_{i<j} I_ij. `phi` are pair features of
    each edge drawn and of other candidates of its first end, and `is_open` which of these there are. `forest` is one of
    the distinct vertices, which then are rows and, after them, vertices without one; `edges` are those cut between its
    blocks, and `forest_weights` those of each vertex's KL given its parent. `excluded`: which first ends of the edges
    (rows) do not compete for which second ends (columns). `forest_cost`: KL of an adapted distribution over forests,
    per vertex, and the factor of its term.
    """

    rows: Rows
    vertices: Int[np.ndarray, " distinct"]
    n_drawn: int
    drawn: slice
    vertex_weights: Float[Tensor, " drawn"]
    edges: Int[Tensor, "edges 2"] | None = None
    edge_weights: Float[Tensor, " edges"] | None = None
    pairs: Int[Tensor, "pairs 2"] | None = None
    pair_weight: float = 0.0
    phi: Float[Tensor, "edges candidates features"] | None = None
    is_open: Bool[Tensor, "edges candidates"] | None = None
    forest: OrderedForest | None = None
    forest_weights: Float[Tensor, " distinct"] | None = None
    is_inferred: bool = False
    excluded: Bool[Tensor, "edges edges"] | None = None
    forest_cost: tuple[float, float] | None = None

    def share(self, worker: int, n_workers: int) -> "Batch":
        """Return one worker's share; the mean of the shares' estimates is the estimate of the whole."""

        def cut(count: int) -> slice:
            return slice(count * worker // n_workers, count * (worker + 1) // n_workers)

        changes = {"drawn": cut(self.n_drawn), "vertex_weights": n_workers * self.vertex_weights[cut(self.n_drawn)]}
        if self.edges is not None and self.edge_weights is not None:
            mine = cut(len(self.edges))
            changes |= {"edges": self.edges[mine], "edge_weights": n_workers * self.edge_weights[mine]}
            if self.excluded is not None:
                changes["excluded"] = self.excluded[mine, mine]
        for name in ("phi", "is_open"):
            if getattr(self, name) is not None and self.edges is not None:
                changes[name] = getattr(self, name)[cut(len(self.edges))]
        if self.pairs is not None:
            changes |= {"pairs": self.pairs[cut(len(self.pairs))], "pair_weight": n_workers * self.pair_weight}
        if self.forest_weights is not None:
            mine = cut(len(self.forest_weights))
            shared = torch.zeros_like(self.forest_weights)
            shared[mine] = n_workers * self.forest_weights[mine]
            changes["forest_weights"] = shared
        return replace(self, **changes)

    def to(self, device: torch.device) -> "Batch":
        """Move the batch to a device."""
        if device.type == "cpu":
            return self
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        moved = {name: value.to(device) for name, value in values.items() if isinstance(value, Tensor | Rows)}
        return replace(self, **moved)

    def vertices_of(self, name: str, draws: Int[np.ndarray, " draws"]) -> list[int]:
        """Return the vertices behind some draws of a term, to name them in an error."""
        ends = {"edge": self.edges, "contrast": self.edges, "non_edge": self.pairs}.get(name)
        start = 0 if name == "singleton" and self.forest is not None else self.drawn.start
        positions = draws + start if ends is None else np.unique(ends.cpu().numpy()[draws])
        return self.vertices[positions].tolist()
