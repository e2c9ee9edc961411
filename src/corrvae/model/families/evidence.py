"""Correlations conditioned on the graph: what a step draws, and posteriors that rank links among candidates."""

from dataclasses import dataclass, replace
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from corrvae.graphs import CorrelationGraph, split_edges
from corrvae.graphs.edges import edge_positions
from corrvae.graphs.pair_features import NAMES, Candidates, PairFeatures, RowDirections, are_linked
from corrvae.model.batch import Batch, TrainingData, number_vertices
from corrvae.model.network import evaluation_mode
from corrvae.model.posterior import Posterior
from corrvae.nn.pair_evidence import PairEvidence

# Splits of the training graph; the share of its edges that each vertex holds out in them; vertices asked in each.
_SPLITS, _SHARE, _ASKED = 4, 0.2, 10_000
# Candidates that paths reach, and those by likeness and weight; how many of them compete with a link in training.
_NEAR, _ALIKE = 300, 200
_COMPETING = 32
# Pairs evaluated together.
_PAIRS = 65536
# Hidden edges that a step draws.
_DRAWN = 64


@final
@dataclass(frozen=True, eq=False)
class Pool:
    """Links that are hidden from the features of their pair, each with candidates that are not linked.

    Rows of `phi` are features of the hidden link, and then of candidates; `is_open` is which of them there are, and
    `competes` whether the hidden link itself is among what is retrieved as candidates. `factors` make the mean over the
    rows the mean over all edges.
    """

    vertices: Int[np.ndarray, " rows"]
    links: Int[np.ndarray, " rows"]
    phi: Float[np.ndarray, "rows candidates features"]
    is_open: Bool[np.ndarray, "rows candidates"]
    competes: Bool[np.ndarray, " rows"]
    factors: Float[np.ndarray, " rows"]


_pools: WeakKeyDictionary[TrainingData, Pool] = WeakKeyDictionary()


def pool_of(data: TrainingData) -> Pool:
    """Return the pool of training data; it is made once."""
    if data not in _pools:
        _pools[data] = _draw_pool(data)
    return _pools[data]


def _draw_pool(data: TrainingData) -> Pool:
    graph = CorrelationGraph(data.edges, data.n_vertices)
    matrix = data.table.matrix
    directions, sizes = RowDirections(matrix)(matrix), row_sizes(matrix)
    pieces = []
    for number in range(_SPLITS):
        generator = np.random.default_rng((data.seed, 5, number))
        split = split_edges(graph, test=_SHARE, validation=0.0, random_state=generator)
        features = PairFeatures(split.train, directions, sizes)
        pairs = np.concatenate([split.test, split.test[:, ::-1]])
        pairs = pairs[generator.permutation(len(pairs))]
        asked, first, counts = np.unique(pairs[:, 0], return_index=True, return_counts=True)
        some = np.sort(generator.permutation(len(asked))[:_ASKED])
        # a held-out edge is drawn from either end; a vertex with many asks for one of them
        quota = np.ceil(_SHARE * graph.degrees) / np.maximum(graph.degrees, 1)
        held = 1.0 - (1.0 - quota[pairs[first[some]]]).prod(axis=1)
        factors = counts[some] / held
        for begin in range(0, len(some), 1000):
            rows = slice(begin, begin + 1000)
            vertices, links = pairs[first[some[rows]]].T
            alike = features.alike(vertices, _ALIKE)
            found = features.candidates(vertices, _NEAR, np.column_stack([links, alike]))
            is_open = found.positions >= 0
            is_open[:, 1:] &= ~are_linked(graph, vertices[:, None], found.positions[:, 1:])
            # a random choice of the open ones: first random keys, then the smallest of them
            keys = generator.random(is_open.shape) + ~is_open
            keys[:, 0] = -1.0
            chosen = np.argsort(keys, axis=1)[:, : 1 + _COMPETING]
            phi = np.take_along_axis(found.features, chosen[..., None], axis=1)
            reached = (found.features[:, 0, 3:5] > 0).any(1) | (alike == links[:, None]).any(1)
            is_open = np.take_along_axis(is_open, chosen, axis=1)
            competes = reached & (is_open.sum(axis=1) > 1)
            pieces.append((vertices, links, phi, is_open, competes, factors[rows]))
    parts = [np.concatenate(part) for part in zip(*pieces, strict=True)]
    parts[-1] = parts[-1] / max(parts[-1].mean(), 1e-12) if len(parts[-1]) else parts[-1]
    return Pool(*parts)


def draw_with_candidates(data: TrainingData, step: int) -> Batch:
    """Draw vertices, and edges that are hidden from the features of their pair, with candidates of their first end."""
    batch = data.draw(step)
    if batch.edges is None or data.edges is None or not data.n_edges or not len(pool_of(data).vertices):
        return replace(batch, edges=None, edge_weights=None)
    pool = pool_of(data)
    rows = np.random.default_rng((data.seed, 7, step)).integers(0, len(pool.vertices), _DRAWN)
    pairs = np.stack([pool.vertices[rows], pool.links[rows]], axis=1)
    vertices, places = number_vertices(batch.vertices[: batch.n_drawn], pairs)
    weights = pool.factors[rows] * (data.n_edges / (data.n_vertices * len(rows)))
    if data.weights is not None:
        weights = weights * data.weights[edge_positions(data.edges, data.n_vertices, pairs)]
    return replace(
        batch,
        rows=data.rows(vertices, step),
        vertices=vertices,
        edges=torch.from_numpy(places),
        edge_weights=torch.from_numpy(weights.astype(np.float32)),
        phi=torch.from_numpy(pool.phi[rows]),
        is_open=torch.from_numpy(pool.is_open[rows]),
        pair_weight=(data.n_vertices - 1) / (data.n_vertices * len(rows)),
    )


def row_sizes(matrix: Any) -> Float[np.ndarray, " rows"]:
    """Return the sum of each row, missing entries left out."""
    return np.nan_to_num(np.asarray(matrix.sum(axis=1), np.float64)).ravel()


class EvidencePosterior(Posterior):
    """Marginals, and correlations and link log-odds that the features of a pair tell."""

    is_correlated = True

    def __init__(
        self,
        network: PairEvidence,
        features: PairFeatures,
        mean: Float[np.ndarray, "rows dim"],
        stddev: Float[np.ndarray, "rows dim"],
        *,
        ids: Any = None,
        tau: Float[np.ndarray, " dim"] | None = None,
        rows: Int[np.ndarray, " rows"] | None = None,
    ) -> None:
        super().__init__(mean, stddev, ids=ids, tau=tau)
        self._network, self.features = network, features
        self.rows = np.arange(len(mean)) if rows is None else rows

    def take(self, positions: Int[np.ndarray, " taken"]) -> "EvidencePosterior":
        """Return the posterior of some vertices, in this order."""
        return EvidencePosterior(
            self._network,
            self.features,
            self.mean[positions],
            self.stddev[positions],
            ids=self.ids[positions],
            tau=self.tau,
            rows=self.rows[positions],
        )

    def link_scores(self, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, " pairs"]:
        """Return the log-odds of a link, up to a constant, for pairs of vertices of the graph."""
        return self._evaluate(self.features.of_pairs(pairs))

    def retrieve(self, vertices: Int[np.ndarray, " rows"]) -> Candidates:
        """Return the candidates of vertices of the graph."""
        return self.features.candidates(vertices, _NEAR, _after_none(self.features.alike(vertices, _ALIKE)))

    def link_candidates(self, vertices: Int[np.ndarray, " rows"]) -> tuple[np.ndarray, np.ndarray]:
        """Return candidates of vertices of the graph and their log-odds; -1 and -inf where there are fewer."""
        found = self.retrieve(vertices)
        there = found.positions >= 0
        scores = np.full(there.shape, -np.inf)
        scores[there] = self._evaluate(found.features[there])
        return found.positions, scores

    def _evaluate(self, phi: Float[np.ndarray, "pairs features"]) -> Float[np.ndarray, " pairs"]:
        scores = np.empty(len(phi))
        with evaluation_mode(self._network):
            for begin in range(0, len(phi), _PAIRS):
                piece = slice(begin, begin + _PAIRS)
                scores[piece] = self._network(torch.from_numpy(phi[piece])).numpy()
        return scores

    def pre_activation(self, positions: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs dim"]:
        """Return a with correlation tanh(a) for pairs of positions."""
        scores = torch.from_numpy(self.link_scores(self.rows[positions]))
        with torch.inference_mode():
            return self._network.pre_activation(scores).double().numpy()

    def vectors(self, positions: Int[np.ndarray, " points"]) -> Float[Tensor, "points 1"]:
        """Return which vertices the points are: correlations depend on the graph around both."""
        return torch.from_numpy(self.rows[positions].astype(np.float64))[:, None]

    def block(
        self, vectors_i: Float[Tensor, "rows 1"], vectors_j: Float[Tensor, "columns 1"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Return a for every point of one set against every point of another."""
        i, j = (vectors[:, 0].long().numpy() for vectors in (vectors_i, vectors_j))
        found = self.features.candidates(i, 0, _after_none(np.tile(j, (len(i), 1))))
        first, second = np.repeat(i, len(j)), np.tile(j, len(i))
        scores = self._evaluate(found.features[:, 1:].reshape(-1, len(NAMES)))
        linked = np.flatnonzero(are_linked(self.features.graph, first, second))
        scores[linked] = self.link_scores(np.stack([first[linked], second[linked]], axis=1))
        with torch.inference_mode():
            return self._network.pre_activation(torch.from_numpy(scores).float()).view(len(i), len(j), -1)


def _after_none(listed: np.ndarray) -> np.ndarray:
    """Return listed candidates without one that is there in any case."""
    return np.insert(listed, 0, -1, axis=1)
