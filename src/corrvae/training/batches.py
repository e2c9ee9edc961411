"""What each step draws, as a batch that the model reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from corrvae.model import Batch, VertexIndex
from corrvae.ranks import Ranks
from corrvae.training.data import TrainingData
from corrvae.training.draws import Draws, ShuffledDraws, WeightedDraws
from corrvae.training.settings import TrainingSettings

_CPU = torch.device("cpu")
_ALONE = Ranks()


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
    shares
        If the batch is one rank's part of a step: for each term, how many draws it has of those that the ranks have on
        average. The mean over ranks of their estimates times these is the estimate of the whole step.
    """

    batch: Batch
    vertices: Int[np.ndarray, " distinct"]
    shares: Mapping[str, float] | None = None


@final
class BatchSource:
    """Draws vertices, edges and pairs, step after step.

    Several ranks draw the same, each for itself, and each takes a part that no other takes: of the vertices, of the
    edges, and of the pairs. So the streams, and where they stand, do not depend on how many ranks there are.

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
    ranks
        Who takes part.
    with_pairs
        Whether the model looks at the pairs: ranks that share a step encode the ends of theirs.
    """

    def __init__(
        self,
        data: TrainingData,
        settings: TrainingSettings,
        seeds: np.random.SeedSequence,
        device: torch.device = _CPU,
        ranks: Ranks = _ALONE,
        *,
        with_pairs: bool = True,
    ) -> None:
        of_vertices, of_edges, of_pairs, of_features = map(np.random.default_rng, seeds.spawn(4))
        self.data = data
        self.device = device
        self.ranks = ranks
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
        self._with_pairs = with_pairs and self._edges is not None
        if ranks.count > 1:
            self._refuse_empty_shares()

    @property
    def n_drawn(self) -> int:
        """Vertices drawn at each step."""
        return self._vertices.batch

    @cached_property
    def _every_pair(self) -> np.ndarray:
        return np.stack(np.triu_indices(self.n_drawn, 1), axis=1)

    def next(self) -> Drawn:
        """Draw a batch."""
        drawn = self._vertices.draw()
        if self.ranks.count > 1:
            return self._next_share(drawn)
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

    def _next_share(self, drawn: np.ndarray) -> Drawn:
        """Give this rank's part of a step in which these vertices were drawn."""
        mine, of_vertices = self._share(drawn)
        shares = {"reconstruction": of_vertices, "singleton": of_vertices}
        if self._edges is None or self.data.edges is None:
            return Drawn(self._batch(mine, mine, None, None), mine, shares)
        picked, shares["edge"] = self._share(self._edges.draw())
        ends, pairs = self.data.edges.take(picked, axis=0), self._draw_pairs(len(drawn))
        if self._with_pairs:
            pairs = self._every_pair if pairs is None else pairs
            pairs, shares["non_edge"] = self._share(pairs)
            ends = np.concatenate([ends, drawn[pairs]])
        found = self._index.distinct(mine, ends)
        edges, pairs = found.positions[: len(picked)], found.positions[len(picked) :]
        weights = None if self._edge_weights is None else self._edge_weights.take(picked)
        return Drawn(self._batch(mine, found.vertices, edges, weights, pairs), found.vertices, shares)

    def _share(self, draws: np.ndarray) -> tuple[np.ndarray, float]:
        """Give this rank's part of some draws, and its size against what a rank has on average."""
        part = draws[self.ranks.share(len(draws))]
        return part, self.ranks.count * len(part) / len(draws)

    def _refuse_empty_shares(self) -> None:
        sizes = {"vertex_batch": self._vertices.batch}
        if self._edges is not None:
            sizes["edge_batch"] = self._edges.batch
        if self._with_pairs:
            every = self.n_drawn * (self.n_drawn - 1) // 2
            sizes["pair_batch"] = every if self._n_pairs is None else min(every, self._n_pairs)
        for name, size in sizes.items():
            if size < self.ranks.count:
                raise ValueError(
                    f"{name}={size} cannot be shared among {self.ranks.count} processes, of which each needs one at "
                    "least; raise it if there are more to draw, or start fewer processes"
                )

    def _batch(
        self,
        drawn: np.ndarray,
        vertices: np.ndarray,
        positions: np.ndarray | None,
        weights: np.ndarray | None,
        pairs: np.ndarray | None = None,
    ) -> Batch:
        shares_redraw = self.ranks.count > 1 and self.data.redraw is not None
        rows = self.data.rows(vertices, self._own_generator() if shares_redraw else self._features)
        if positions is not None and self.ranks.count == 1:
            pairs = self._draw_pairs(len(drawn))
        return Batch(
            rows if self.device == _CPU else rows.to(self.device),
            len(drawn),
            edges=self._tensor(positions),
            edge_weights=self._tensor(weights),
            pairs=self._tensor(pairs),
            vertex_weights=None if self._sample_weights is None else self._tensor(self._sample_weights[drawn]),
        )

    def _own_generator(self) -> np.random.Generator:
        """Give a generator that no other rank has, for features drawn anew; all ranks' streams move on alike."""
        return np.random.default_rng((int(self._features.integers(2**63)), self.ranks.index))

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
