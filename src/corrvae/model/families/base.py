"""What every posterior family can do."""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator
from torch import nn

from corrvae.graphs import CorrelationGraph
from corrvae.model.batch import Batch, TrainingData
from corrvae.model.network import CorrelatedModel
from corrvae.model.objectives import Terms, beyond_nearest, competition, log_odds_block
from corrvae.model.posterior import Posterior
from corrvae.nn import FeatureTable, Marginals

RIVALS = ("all", "disjoint", "nearest")
# How many compete if only the nearest do.
_NEAREST = 16


class Family(BaseEstimator, nn.Module):
    """A family of posteriors q(z given x, G): what a step draws, what it optimises, what is inferred.

    Its options are constructor parameters, as in scikit-learn, so that ``family__option`` works in a grid search. The
    networks it needs of its own are made by `build`; they are trained and saved with the model. A new family is one
    class with these methods, passed as ``CorrelatedVAE(family=...)``.

    A family that `needs_graph` can be trained with edges only. If it `can_propagate`, its encoder is that of joint
    posteriors too. If it `conditions_on_graph`, posteriors depend on the graph between the points, which may then have
    vertices without features. `contrast` and `rivals` are as in `Independent`; a family that has them calls
    `add_contrast`.
    """

    needs_graph: ClassVar[bool] = False
    can_propagate: ClassVar[bool] = False
    conditions_on_graph: ClassVar[bool] = False
    contrast: float = 0.0
    rivals: str = "all"

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def build(self, n_features: int, n_components: int, *, normalize: str, dropout: float) -> None:
        """Make the family's own networks; `normalize` and `dropout` are those of the encoder."""
        if not 0 <= self.contrast < float("inf"):
            raise ValueError(f"contrast must be finite and not negative, got {self.contrast}")
        if self.rivals not in RIVALS:
            raise ValueError(f"rivals must be one of {RIVALS}, got {self.rivals!r}")
        self.log_temperature = nn.Parameter(torch.zeros(())) if self.contrast else None

    def observe(self, data: TrainingData) -> None:
        """Learn what is to be known of the training data before the first step."""

    def rows_per_step(self, n_rows: int) -> int | None:
        """Return how many rows a step has to draw; ``None`` if that is for others to choose."""
        return None

    def draws_forests(self, data: TrainingData) -> bool:
        """Return whether the edges of these data enter by forests that are drawn, not by their weights."""
        return False

    def steps_per_epoch(self, data: TrainingData) -> int:
        """Return the number of steps that draw every row once, about."""
        return data.vertex_draws.per_epoch

    def n_pieces(self, data: TrainingData) -> int:
        """Return the number of steps that together are all of the data."""
        return data.vertex_draws.per_epoch

    def draw(self, data: TrainingData, step: int) -> Batch:
        """Draw what a step needs; the same for the same data, seed and step."""
        batch = data.draw(step)
        if not self.contrast or batch.edges is None:
            return batch
        return replace(batch, excluded=data.exclude(batch, disjoint=self.rivals == "disjoint"))

    def add_contrast(self, terms: Terms, model: CorrelatedModel, marginals: Marginals, batch: Batch) -> Terms:
        """Add mean_e log softmax_j(log-odds / T) over the edges of a batch, if the family has `contrast`."""
        if batch.edges is None or batch.excluded is None or self.log_temperature is None:
            return terms
        first, second = (Marginals(marginals.joint[ends]) for ends in batch.edges.T)
        scores = log_odds_block(first, second, model.tau_tensor(marginals.mean.shape[1])) / self.log_temperature.exp()
        excluded = batch.excluded
        if self.rivals == "nearest":
            excluded = excluded | beyond_nearest(scores.detach().masked_fill(excluded, -torch.inf), _NEAREST)
        values = competition(scores, excluded)
        weights = torch.full_like(values, 1.0 / max(1, len(values)), requires_grad=False)
        return terms.add("contrast", self.contrast, values, weights)

    @abstractmethod
    def terms(self, model: CorrelatedModel, batch: Batch, generator: torch.Generator | None = None) -> Terms:
        """Return the objective's terms at a batch."""

    def infer(
        self,
        model: CorrelatedModel,
        table: FeatureTable,
        graph: CorrelationGraph | None = None,
        ids: Shaped[np.ndarray, " rows"] | None = None,
    ) -> Posterior:
        """Return the posterior of the rows of a table; the graph between them is for families that use it."""
        mean, stddev = model.encode(table)
        return self.posterior(model, mean, stddev, table, ids, graph)

    def posterior(
        self,
        model: CorrelatedModel,
        mean: Float[np.ndarray, "rows dim"],
        stddev: Float[np.ndarray, "rows dim"],
        table: FeatureTable | None,
        ids: Shaped[np.ndarray, " vertices"] | None = None,
        graph: CorrelationGraph | None = None,
    ) -> Posterior:
        """Return the posterior of rows whose encodings are known; `table` holds their features, if they were kept.

        The graph is for families that condition on it. Vertices after the rows have no features.
        """
        return Posterior(mean, stddev, ids=ids, tau=model.tau_values(mean.shape[1]))
