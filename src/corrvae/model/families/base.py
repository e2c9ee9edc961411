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
    """

    needs_graph: ClassVar[bool] = False

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
        return self.posterior(model, mean, stddev, table, ids)

    def posterior(
        self,
        model: CorrelatedModel,
        mean: Float[np.ndarray, "rows dim"],
        stddev: Float[np.ndarray, "rows dim"],
        table: FeatureTable | None,
        ids: Shaped[np.ndarray, " rows"] | None = None,
    ) -> Posterior:
        """Return the posterior of rows whose marginals are known; `table` holds their features, if they were kept."""
        return Posterior(mean, stddev, ids=ids, tau=model.tau_values(mean.shape[1]))
