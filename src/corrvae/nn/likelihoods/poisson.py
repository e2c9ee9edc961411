"""Counts with a rate for each feature."""

from typing import final

import numpy as np
import torch

from corrvae.nn.likelihoods.base import Columns, CountLikelihood, Entries, Outputs, RowNumbers, from_numpy, to_numpy


@final
class Poisson(CountLikelihood):
    """Each feature is Poisson with rate exp(output): log p = x output - exp(output) - log x!."""

    def entry_log_prob(self, outputs: Entries, values: Entries, columns: Columns) -> Entries:
        """Return the log-probability of each value."""
        return values * outputs - outputs.exp() - torch.lgamma(values + 1.0)

    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw counts."""
        return from_numpy(generator.poisson(to_numpy(outputs.exp())), outputs)
