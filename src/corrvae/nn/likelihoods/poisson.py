"""Counts with a rate for each feature."""

from typing import final

import numpy as np
import torch
from jaxtyping import Float

from corrvae.nn.likelihoods.base import Columns, Entries, EntrywiseLikelihood, Outputs, RowNumbers, from_numpy, to_numpy


@final
class Poisson(EntrywiseLikelihood):
    """Each feature is Poisson with rate exp(output): log p = x output - exp(output) - log x!."""

    domain = "finite numbers that are not negative"
    non_negative = True
    default_normalize = "log1p"

    def average_outputs(self, means: Float[np.ndarray, " features"]) -> Float[np.ndarray, " features"]:
        """Return the logarithm of each mean."""
        return np.log(np.maximum(means, 1e-4))

    def entry_log_prob(self, outputs: Entries, values: Entries, columns: Columns) -> Entries:
        """Return the log-probability of each value."""
        return values * outputs - outputs.exp() - torch.lgamma(values + 1.0)

    def mean(self, outputs: Outputs, totals: RowNumbers | None = None) -> Outputs:
        """Return the rate of each feature."""
        return outputs.exp()

    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw counts."""
        return from_numpy(generator.poisson(to_numpy(outputs.exp())), outputs)
