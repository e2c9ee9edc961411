"""Counts that vary more than Poisson's."""

from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from corrvae.nn.likelihoods.base import EntrywiseLikelihood, from_numpy, to_numpy


@final
class NegativeBinomial(EntrywiseLikelihood):
    """Each feature has mean m = exp(output) and variance m + m^2 / r, with one learned r for each feature.

    log p = log C(x + r - 1, x) + x log(m / (m + r)) + r log(r / (m + r)); r begins at 1.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> NegativeBinomial(1).log_prob(torch.zeros(1, 1), DenseRows(torch.tensor([[0.0]]))).exp()
    tensor([0.5000], grad_fn=<ExpBackward0>)
    """

    domain = "finite numbers that are not negative"

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self.log_dispersion = nn.Parameter(torch.zeros(n_features))

    def entry_log_prob(
        self, outputs: Float[Tensor, "..."], values: Float[Tensor, "..."], columns: Int[Tensor, " entries"] | slice
    ) -> Float[Tensor, "..."]:
        """Give the log-probability of each value."""
        log_dispersion = self.log_dispersion[columns]
        dispersion = log_dispersion.exp()
        log_odds = outputs - log_dispersion
        arrangements = torch.lgamma(values + dispersion) - torch.lgamma(dispersion) - torch.lgamma(values + 1.0)
        return arrangements + values * logsigmoid(log_odds) + dispersion * logsigmoid(-log_odds)

    def mean(
        self, outputs: Float[Tensor, "rows features"], totals: Float[Tensor, " rows"] | None = None
    ) -> Float[Tensor, "rows features"]:
        """Give the mean of each feature."""
        return outputs.exp()

    def sample(
        self,
        outputs: Float[Tensor, "rows features"],
        generator: np.random.Generator,
        totals: Float[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows features"]:
        """Draw counts."""
        failure = (self.log_dispersion - outputs).double().sigmoid()
        dispersion = to_numpy(self.log_dispersion.double().exp())
        return from_numpy(generator.negative_binomial(dispersion, to_numpy(failure)), outputs)

    def admits(self, values: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Say of each value whether it is finite and not negative."""
        return (values >= 0) & np.isfinite(values)
