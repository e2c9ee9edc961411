"""Counts that vary more than Poisson counts."""

from typing import final

import numpy as np
import torch
from torch import nn
from torch.nn.functional import logsigmoid

from corrvae.nn.likelihoods.base import Columns, CountLikelihood, Entries, Outputs, RowNumbers, from_numpy, to_numpy


@final
class NegativeBinomial(CountLikelihood):
    """Each feature has mean m = exp(output) and variance m + m^2 / r, with one learned r for each feature.

    log p = log C(x + r - 1, x) + x log(m / (m + r)) + r log(r / (m + r)); r begins at 1.
    """

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self.log_dispersion = nn.Parameter(torch.zeros(n_features))

    def entry_log_prob(self, outputs: Entries, values: Entries, columns: Columns) -> Entries:
        """Return the log-probability of each value."""
        log_dispersion = self.log_dispersion[columns]
        dispersion = log_dispersion.exp()
        log_odds = outputs - log_dispersion
        arrangements = torch.lgamma(values + dispersion) - torch.lgamma(dispersion) - torch.lgamma(values + 1.0)
        return arrangements + values * logsigmoid(log_odds) + dispersion * logsigmoid(-log_odds)

    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw counts."""
        failure = (self.log_dispersion - outputs).double().sigmoid()
        dispersion = to_numpy(self.log_dispersion.double().exp())
        return from_numpy(generator.negative_binomial(dispersion, to_numpy(failure)), outputs)
