"""What each step draws, as a batch that the model reads."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from corrvae.model import Batch, VertexIndex
from corrvae.training.data import TrainingData
from corrvae.training.draws import Draws, ShuffledDraws, WeightedDraws
from corrvae.training.settings import TrainingSettings

_CPU = torch.device("cpu")


@final
@dataclass(frozen=True, eq=False)
class Drawn:
    """A batch, and which vertices its rows are.

    Attributes
    ----------
    batch
        For the model.
    vertices
        The distinct vertices, in the order of the batch's rows.
    """

    batch: Batch
    vertices: Int[np.ndarray, " distinct"]


@final
class BatchSource:
    """Draws vertices, edges and pairs, step after step.

    Parameters
    ----------
    data
        What to draw from.
    settings
        How many, and how.
    seeds
        Seeds the draws.
    device
        Where batches go.
    """

    def __init__(
        self, data: TrainingData, settings: TrainingSettings, seeds: np.random.SeedSequence, device: torch.device = _CPU
    ) -> None:
        of_vertices, of_edges, of_pairs, of_features = map(np.random.default_rng, seeds.spawn(4))
        self.data = data
        self.device = device
        self._vertices = ShuffledDraws(data.n_vertices, settings.vertex_batch, of_vertices)
        self._index = VertexIndex(data.n_vertices)
        self._edges: Draws | None = None
        self._edge_weights: np.ndarray | None = None
        if data.n_edges:
            weights = np.ones(data.n_edges) if data.weights is None else data.weights
            if settings.edge_sampling == "weighted":
                self._edges = WeightedDraws(weights, settings.edge_batch, of_edges)
            else:
                self._edges = ShuffledDraws(data.n_edges, settings.edge_batch, of_edges)
                self._edge_weights = weights.astype(np.float32)
        self._sample_weights = None if data.sample_weights is None else data.sample_weights.astype(np.float32)
        self._n_pairs = settings.pair_batch
        self._pairs, self._features = of_pairs, of_features

    @property
    def n_drawn(self) -> int:
        """Vertices drawn at each step."""
        return self._vertices.batch

    def next(self) -> Drawn:
        """Draw a batch."""
        drawn = self._vertices.draw()
        if self._edges is None or self.data.edges is None:
            return Drawn(self._batch(drawn, drawn, None, None), drawn)
        picked = self._edges.draw()
        found = self._index.distinct(drawn, self.data.edges.take(picked, axis=0))
        weights = None if self._edge_weights is None else self._edge_weights.take(picked)
        return Drawn(self._batch(drawn, found.vertices, found.positions, weights), found.vertices)

    def state(self) -> dict[str, Any]:
        """Give the position of every stream of draws, as JSON."""
        return {
            "vertices": self._vertices.state(),
            "edges": None if self._edges is None else self._edges.state(),
            "pairs": self._pairs.bit_generator.state,
            "features": self._features.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up the position that `state` gave."""
        self._vertices.restore(state["vertices"])
        if self._edges is not None:
            self._edges.restore(state["edges"])
        self._pairs.bit_generator.state = state["pairs"]
        self._features.bit_generator.state = state["features"]

    def _batch(
        self, drawn: np.ndarray, vertices: np.ndarray, positions: np.ndarray | None, weights: np.ndarray | None
    ) -> Batch:
        rows = self.data.rows(vertices, self._features)
        return Batch(
            rows if self.device == _CPU else rows.to(self.device),
            len(drawn),
            edges=self._tensor(positions),
            edge_weights=self._tensor(weights),
            pairs=None if positions is None else self._tensor(self._draw_pairs(len(drawn))),
            vertex_weights=None if self._sample_weights is None else self._tensor(self._sample_weights[drawn]),
        )

    def _tensor(self, array: np.ndarray | None) -> Tensor | None:
        if array is None:
            return None
        tensor = torch.from_numpy(array)
        return tensor if self.device == _CPU else tensor.to(self.device, non_blocking=True)

    def _draw_pairs(self, n_drawn: int) -> np.ndarray | None:
        """Draw pairs of drawn vertices; ``None`` if all of them are to be taken."""
        if self._n_pairs is None or self._n_pairs >= n_drawn * (n_drawn - 1) // 2:
            return None
        return uniform_pairs(n_drawn, self._n_pairs, self._pairs)


def uniform_pairs(count: int, n_pairs: int, generator: np.random.Generator) -> Int[np.ndarray, "pairs 2"]:
    """Draw pairs of distinct positions below `count`, uniformly, with replacement.

    Examples
    --------
    >>> uniform_pairs(2, 3, np.random.default_rng(0)).sum(axis=1)
    array([1, 1, 1])
    """
    first = generator.integers(0, count, n_pairs)
    second = generator.integers(0, count - 1, n_pairs)
    return np.stack([first, second + (second >= first)], axis=1)
