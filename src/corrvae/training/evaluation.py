"""The objective of validation data: the same draws and the same noise every time."""

from collections.abc import Iterator
from math import ceil, isfinite
from typing import final

import numpy as np
import torch
from torch import Tensor

from corrvae.model import Batch, CorrelatedModel, Population, VertexIndex
from corrvae.objectives import Gamma, Terms, gamma_pair
from corrvae.training.batches import uniform_pairs
from corrvae.training.breakage import broken_term
from corrvae.training.data import TrainingData
from corrvae.training.history import TERMS

# Vertices and edges of a piece, and pairs in all: pairs are too many to go through all of them.
_VERTICES, _EDGES, _PAIRS = 2048, 4096, 8192


@final
class Evaluator:
    """Evaluates a model's objective on data, over all vertices, all edges, and a fixed sample of pairs.

    Parameters
    ----------
    data
        Usually held out of training.
    gamma
        Strength of the regulariser of CVAE_corr.
    seeds
        Seeds the noise, the pairs and the features that are drawn anew.
    device
        Where the model is.
    trained_on
        What the model is trained on, if that is something else. Fewer of a graph's edges lie within rows that are held
        out, so the terms keep the proportions that they have in training: the edge term is the weighted mean of T over
        the edges of `data`, times the sum of weights per vertex in training, and gamma counts if it does in training.
        Without an edge in `data` the edge term is 0.
    """

    def __init__(
        self,
        data: TrainingData,
        gamma: Gamma,
        seeds: np.random.SeedSequence,
        device: torch.device | None = None,
        trained_on: Population | None = None,
    ) -> None:
        self.data = data
        self.gamma = gamma
        own = data.population
        self._has_graph = data.edges is not None if trained_on is None else trained_on.n_edges > 0
        whole = own if trained_on is None else trained_on
        self._population = Population(whole.n_vertices, data.n_edges, whole.total_weight)
        self._edge_factor = whole.total_weight / own.total_weight if own.total_weight else 0.0
        self.device = torch.device("cpu") if device is None else device
        self._index = VertexIndex(data.n_vertices)
        of_pieces, self._of_features, of_noise = seeds.spawn(3)
        self._noise_seed = int(of_noise.generate_state(1, np.uint64)[0])
        n_pieces = max(1, ceil(data.n_vertices / _VERTICES), ceil(data.n_edges / _EDGES))
        n_pieces = min(n_pieces, max(1, data.n_vertices // 2))  # a piece has two vertices at least, for a pair
        generator = np.random.default_rng(of_pieces)
        self._vertices = np.array_split(generator.permutation(data.n_vertices), n_pieces)
        self._edges = np.array_split(generator.permutation(data.n_edges), n_pieces)
        n_pairs = ceil(_PAIRS / n_pieces)
        self._pairs = [uniform_pairs(max(2, len(piece)), n_pairs, generator) for piece in self._vertices]

    def __call__(self, model: CorrelatedModel) -> dict[str, float]:
        """Give the terms and the total by name, in evaluation mode; the model is left in the mode it was in."""
        sums: dict[str, float] = dict.fromkeys(TERMS, 0.0)
        for piece, (_, _, terms) in enumerate(self._pieces(model)):
            values = terms.numbers()
            for name, share in self._shares(piece).items():
                if share and name in values:
                    sums[name] += share * values[name]
        correlated = model.pair_network is not None and self._has_graph
        of_singletons, of_pairs = gamma_pair(self.gamma) if correlated else (0.0, 0.0)
        penalty = (1.0 + of_singletons) * sums["singleton"] + sums["edge"] + of_pairs * sums["non_edge"]
        return {**sums, "total": sums["reconstruction"] - penalty}

    def find_broken(self, model: CorrelatedModel) -> tuple[str, tuple[int, ...]]:
        """Find the first term that is infinite or not a number, and the vertices of the data it broke at."""
        for batch, vertices, terms in self._pieces(model):
            if not all(map(isfinite, terms.numbers().values())):
                return broken_term(terms, batch, vertices)
        return "the objective", ()

    def _pieces(self, model: CorrelatedModel) -> Iterator[tuple[Batch, np.ndarray, Terms]]:
        """Go through the data, always with the same noise; the model is left in the mode it was in."""
        generator = torch.Generator(self.device).manual_seed(self._noise_seed)
        of_features = np.random.default_rng(self._of_features)
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                for piece in range(len(self._vertices)):
                    batch, vertices = self._batch(piece, of_features)
                    yield batch, vertices, model.terms(batch, self._population, gamma=self.gamma, generator=generator)
        finally:
            model.train(training)

    def _shares(self, piece: int) -> dict[str, float]:
        """Give the part that a piece's mean has in the mean over everything, for each term."""
        of_vertices = len(self._vertices[piece]) / self.data.n_vertices
        of_edges = len(self._edges[piece]) / max(1, self.data.n_edges)
        of_pairs = 1.0 / len(self._vertices)
        return {"reconstruction": of_vertices, "singleton": of_vertices, "edge": of_edges, "non_edge": of_pairs}

    def _batch(self, piece: int, of_features: np.random.Generator) -> tuple[Batch, np.ndarray]:
        """Give a piece's batch and its vertices, those drawn first."""
        drawn, picked, weights = self._vertices[piece], self._edges[piece], self.data.sample_weights
        vertices, edges, edge_weights = drawn, None, None
        if self._has_graph and self.data.n_vertices > 1:
            if self.data.edges is None or len(picked) == 0:
                # A piece without edges still has pairs: an edge without weight stands in.
                ends, of_edges = drawn[None, :2], np.zeros(1)
            else:
                ends, of_edges = self.data.edges[picked], np.full(len(picked), self._edge_factor)
                if self.data.weights is not None:
                    of_edges = of_edges * self.data.weights[picked]
            found = self._index.distinct(drawn, ends)
            vertices, edges, edge_weights = found.vertices, self._tensor(found.positions), self._tensor(of_edges)
        batch = Batch(
            self.data.rows(vertices, of_features).to(self.device),
            len(drawn),
            edges=edges,
            edge_weights=edge_weights,
            pairs=None if edges is None else self._tensor(self._pairs[piece]),
            vertex_weights=None if weights is None else self._tensor(weights[drawn]),
        )
        return batch, vertices

    def _tensor(self, array: np.ndarray) -> Tensor:
        kind = np.float32 if array.dtype.kind == "f" else np.int64
        return torch.from_numpy(array.astype(kind)).to(self.device)
