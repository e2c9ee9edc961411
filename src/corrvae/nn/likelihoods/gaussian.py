"""Real features with Gaussian noise."""

from math import expm1, log, pi
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from corrvae.nn.likelihoods.base import Columns, Entries, EntrywiseLikelihood, Outputs, RowNumbers, from_numpy, to_numpy


@final
class Gaussian(EntrywiseLikelihood):
    """Each feature is N(output, stddev^2), with one learned standard deviation for each feature.

    The standard deviation is ``floor + softplus(raw)`` and begins at 1: `corrvae.CorrelatedVAE` standardises features.

    Without a floor, a constant column would drive the density to infinity.
    """

    domain = "finite numbers"

    def __init__(self, n_features: int, *, floor: float = 1e-3) -> None:
        super().__init__(n_features)
        self.floor = floor
        self.raw = nn.Parameter(torch.full((n_features,), log(expm1(1.0 - floor))))

    @property
    def stddev(self) -> Float[Tensor, " features"]:
        """The learned standard deviation of each feature."""
        return self.floor + softplus(self.raw)

    def entry_log_prob(self, outputs: Entries, values: Entries, columns: Columns) -> Entries:
        """Return the log-density of each value."""
        stddev = self.stddev[columns]
        return -0.5 * ((values - outputs) / stddev).square() - stddev.log() - 0.5 * log(2.0 * pi)

    def mean(self, outputs: Outputs, totals: RowNumbers | None = None) -> Outputs:
        """Return the mean of each feature."""
        return outputs

    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw values."""
        return from_numpy(generator.normal(to_numpy(outputs), to_numpy(self.stddev)), outputs)
