"""Use your own likelihood: Student's t, for measurements some of which are badly wrong.

Run: python examples/custom_likelihood.py
"""

import tempfile

import numpy as np
import torch
from torch import nn

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.nn import EntrywiseLikelihood

FREEDOM = 3.0


class StudentT(EntrywiseLikelihood):
    """Each feature is Student's t around the decoder's output, with its own learned scale."""

    domain = "finite numbers"  # for the error message if a feature is something else

    def __init__(self, n_features):
        super().__init__(n_features)
        self.log_scale = nn.Parameter(torch.zeros(n_features))

    def entry_log_prob(self, outputs, values, columns):
        """Return the log-probability of each value; sparse rows and missing entries follow from it."""
        scale = self.log_scale[columns].exp()
        return torch.distributions.StudentT(FREEDOM, outputs, scale, validate_args=False).log_prob(values)

    def mean(self, outputs, totals=None):
        """Return the expected features."""
        return outputs

    def sample(self, outputs, generator, totals=None):
        """Draw features."""
        noise = torch.from_numpy(generator.standard_t(FREEDOM, tuple(outputs.shape))).to(outputs)
        return outputs + self.log_scale.exp() * noise


# A chain of 300 places whose measurements change slowly from one to the next; three in a hundred are far off.
rng = np.random.default_rng(0)
position = np.cumsum(rng.normal(scale=0.2, size=(300, 2)), axis=0)
truth = np.tanh(position @ rng.normal(size=(2, 20)))
X = truth + 0.1 * rng.normal(size=truth.shape)
wrong = rng.random(X.shape) < 0.03
X[wrong] += rng.normal(scale=10.0, size=wrong.sum())
graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(299)])

settings = {"hidden": (50,), "random_state": 0}
for name, likelihood in (("gaussian", "gaussian"), ("StudentT", StudentT)):
    model = CorrelatedVAE(3, likelihood=likelihood, **settings).fit(X, graph=graph)
    error = np.abs(model.reconstruct(X) - truth)
    print(f"{name}: mean error of the reconstruction {error.mean():.3f}, at wrong entries {error[wrong].mean():.3f}")

# A model folder holds no code: pass the class when loading.
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/run")
    again = load(f"{folder}/run", likelihood=StudentT)
    print(f"same embedding after loading: {np.array_equal(again.transform(X), model.transform(X))}")
