"""Counts with a rate for each feature."""

from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from corrvae.nn.likelihoods.base import EntrywiseLikelihood, from_numpy, to_numpy


@final
class Poisson(EntrywiseLikelihood):
    """Each feature is Poisson with rate exp(output): log p = x output - exp(output) - log x!.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> Poisson(1).log_prob(torch.zeros(1, 1), DenseRows(torch.tensor([[0.0]]))).exp()
    tensor([0.3679])
    """

    domain = "finite numbers that are not negative"

    def entry_log_prob(
        self, outputs: Float[Tensor, "..."], values: Float[Tensor, "..."], columns: Int[Tensor, " entries"] | slice
    ) -> Float[Tensor, "..."]:
        """Give the log-probability of each value."""
        return values * outputs - outputs.exp() - torch.lgamma(values + 1.0)

    def mean(
        self, outputs: Float[Tensor, "rows features"], totals: Float[Tensor, " rows"] | None = None
    ) -> Float[Tensor, "rows features"]:
        """Give the rate of each feature."""
        return outputs.exp()

    def sample(
        self,
        outputs: Float[Tensor, "rows features"],
        generator: np.random.Generator,
        totals: Float[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows features"]:
        """Draw counts."""
        return from_numpy(generator.poisson(to_numpy(outputs.exp())), outputs)

    def admits(self, values: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Say of each value whether it is finite and not negative."""
        return (values >= 0) & np.isfinite(values)
