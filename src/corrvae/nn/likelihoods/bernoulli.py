"""Features that are present or not."""

from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import softplus

from corrvae.nn.likelihoods.base import EntrywiseLikelihood, from_numpy, to_numpy


@final
class Bernoulli(EntrywiseLikelihood):
    """Each feature is 1 with probability sigmoid(output): log p = x output - log(1 + exp(output)).

    Values between 0 and 1 are allowed and read as shares of both.

    Examples
    --------
    >>> import torch
    >>> from corrvae.nn import DenseRows
    >>> Bernoulli(2).log_prob(torch.zeros(1, 2), DenseRows(torch.tensor([[1.0, 0.0]]))).exp()
    tensor([0.2500])
    """

    domain = "values in [0, 1]"

    def entry_log_prob(
        self, outputs: Float[Tensor, "..."], values: Float[Tensor, "..."], columns: Int[Tensor, " entries"] | slice
    ) -> Float[Tensor, "..."]:
        """Give the log-probability of each value."""
        return values * outputs - softplus(outputs)

    def mean(
        self, outputs: Float[Tensor, "rows features"], totals: Float[Tensor, " rows"] | None = None
    ) -> Float[Tensor, "rows features"]:
        """Give the probability of each feature."""
        return outputs.sigmoid()

    def sample(
        self,
        outputs: Float[Tensor, "rows features"],
        generator: np.random.Generator,
        totals: Float[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows features"]:
        """Draw zeros and ones."""
        return from_numpy(generator.random(outputs.shape) < to_numpy(outputs.sigmoid()), outputs)

    def admits(self, values: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Say of each value whether it lies in [0, 1]."""
        return (values >= 0) & (values <= 1)
