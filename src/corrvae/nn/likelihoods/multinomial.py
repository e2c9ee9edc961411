"""Counts as draws from a softmax over the features."""

from typing import final

import numpy as np
from jaxtyping import Float

from corrvae.nn.likelihoods.base import Likelihood, Outputs, RowNumbers, from_numpy, to_numpy
from corrvae.nn.rows import Rows

# An output that leaves a feature no probability. Minus infinity would make the softmax of a row without any observed
# feature NaN.
_NEVER = -1e30


@final
class Multinomial(Likelihood):
    """The counts of a row are independent draws from softmax(outputs): log p = sum_k x_k log softmax(outputs)_k.

    The number of draws is given, and the multinomial coefficient, which depends on no parameter, is left out: this is
    the probability of the draws in one order. Missing counts condition the draws on the observed features: the softmax
    runs over those. A row of zeros has log-probability 0.
    """

    domain = "finite numbers that are not negative"
    non_negative = True
    default_normalize = "l2"

    def average_outputs(self, means: Float[np.ndarray, " features"]) -> Float[np.ndarray, " features"]:
        """Return the logarithm of each feature's share."""
        shares = np.maximum(means, 1e-3 * means[means > 0].min()) if (means > 0).any() else np.ones_like(means)
        return np.log(shares / shares.mean())

    def log_prob(self, outputs: Outputs, target: Rows) -> RowNumbers:
        """Return the log-probability of each row of `target`, without its missing entries."""
        if target.observed is not None:
            missing = (~target.observed).to(outputs.dtype)
            outputs = outputs.masked_fill(target.map(lambda _: missing).dense() > 0, _NEVER)
        # the value of a missing entry is 0, as is its product with about -1e30
        return target.sum_entries(target.take(outputs.log_softmax(1)) * target.values)

    def mean(self, outputs: Outputs, totals: RowNumbers | None = None) -> Outputs:
        """Return the expected counts, or the probabilities if no totals are given."""
        probabilities = outputs.softmax(1)
        return probabilities if totals is None else probabilities * totals[:, None]

    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw as many counts as the (rounded) totals, or one for each row."""
        draws = np.ones(len(outputs), dtype=np.int64) if totals is None else np.rint(to_numpy(totals)).astype(np.int64)
        probabilities = to_numpy(outputs.double().softmax(1))
        return from_numpy(generator.multinomial(draws, probabilities), outputs)
