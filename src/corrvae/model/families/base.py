"""What every posterior family can do."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator
from torch import nn

from corrvae.graphs import CorrelationGraph
from corrvae.model.batch import Batch, TrainingData
from corrvae.model.network import CorrelatedModel
from corrvae.model.objectives import Terms
from corrvae.model.posterior import Posterior
from corrvae.nn import FeatureTable


class Family(BaseEstimator, nn.Module):
    """A family of posteriors q(z given x, G): what a step draws, what it optimises, what is inferred.

    Its options are constructor parameters, as in scikit-learn, so that ``family__option`` works in a grid search. The
    networks it needs of its own are made by `build`; they are trained and saved with the model. A new family is one
    class with these methods, passed as ``CorrelatedVAE(family=...)``.

    Attributes
    ----------
    needs_graph : bool
        Whether it can be trained with edges only.
    conditions_on_graph : bool
        Whether posteriors depend on the graph between the points, which may then have vertices without features.
    """

    needs_graph: ClassVar[bool] = False
    conditions_on_graph: ClassVar[bool] = False

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def build(self, n_features: int, n_components: int, *, normalize: str, dropout: float) -> None:
        """Make the family's own networks.

        Parameters
        ----------
        n_features, n_components
            Number of features; latent dimension.
        normalize, dropout
            What is done to features before the encoder reads them.
        """

    def observe(self, data: TrainingData) -> None:
        """Learn what is to be known of the training data before the first step."""

    def rows_per_step(self, n_rows: int) -> int | None:
        """Return how many rows a step has to draw; ``None`` if that is for others to choose."""
        return None

    def steps_per_epoch(self, data: TrainingData) -> int:
        """Return the number of steps that draw every row once, about."""
        return data.vertex_draws.per_epoch

    def n_pieces(self, data: TrainingData) -> int:
        """Return the number of steps that together are all of the data."""
        return data.vertex_draws.per_epoch

    def draw(self, data: TrainingData, step: int) -> Batch:
        """Draw what a step needs; the same for the same data, seed and step."""
        return data.draw(step)

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
