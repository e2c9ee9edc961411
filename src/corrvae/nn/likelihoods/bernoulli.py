"""Features that are present or absent."""

from typing import final

import numpy as np
from jaxtyping import Bool, Float, Shaped
from torch.nn.functional import softplus

from corrvae.nn.likelihoods.base import Columns, Entries, EntrywiseLikelihood, Outputs, RowNumbers, from_numpy, to_numpy


@final
class Bernoulli(EntrywiseLikelihood):
    """Each feature is 1 with probability sigmoid(output): log p = x output - log(1 + exp(output)).

    Values between 0 and 1 are allowed and count as shares of both.
    """

    domain = "values in [0, 1]"
    non_negative = True

    def average_outputs(self, means: Float[np.ndarray, " features"]) -> Float[np.ndarray, " features"]:
        """Return the log-odds of each feature."""
        shares = np.clip(means, 1e-4, 1.0 - 1e-4)
        return np.log(shares) - np.log1p(-shares)

    def entry_log_prob(self, outputs: Entries, values: Entries, columns: Columns) -> Entries:
        """Return the log-probability of each value."""
        return values * outputs - softplus(outputs)

    def mean(self, outputs: Outputs, totals: RowNumbers | None = None) -> Outputs:
        """Return the probability of each feature."""
        return outputs.sigmoid()

    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw zeros and ones."""
        return from_numpy(generator.random(outputs.shape) < to_numpy(outputs.sigmoid()), outputs)

    def admits(self, values: Shaped[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
        """Return for each value whether it lies in [0, 1]."""
        return (values >= 0) & (values <= 1)
