"""What every likelihood must satisfy, whatever its distribution."""

import numpy as np
import torch
from scipy import sparse

from corrvae.nn import DenseRows, Likelihood
from support.rows import sparse_rows


def outputs(n_rows: int = 4, n_features: int = 6) -> torch.Tensor:
    """Return random decoder outputs."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_rows, n_features, generator=generator, dtype=torch.float64).requires_grad_()


def counts(n_rows: int = 4, n_features: int = 6) -> np.ndarray:
    """Return random counts with many zeros, and one row of zeros only."""
    values = np.random.default_rng(1).poisson(0.8, (n_rows, n_features)).astype(float)
    values[1] = 0.0
    return values


def assert_sparse_equals_dense(likelihood: Likelihood, values: np.ndarray) -> None:
    """Check that value and every gradient agree between the two kinds of rows, with and without missing entries."""
    missing = values.copy()
    missing[0, :2] = np.nan
    missing[2] = np.nan
    for target in (values, missing):
        found = []
        for rows in (DenseRows(torch.from_numpy(target)), sparse_rows(sparse.csr_array(target))):
            rows = rows.mask_missing() if np.isnan(target).any() else rows
            inputs = [outputs(), *likelihood.parameters()]
            log_prob = likelihood.log_prob(inputs[0], rows)
            weights = torch.arange(1.0, 5.0, dtype=torch.float64)
            found.append([log_prob, *torch.autograd.grad((weights * log_prob).sum(), inputs)])
        for dense, stored in zip(*found, strict=True):
            torch.testing.assert_close(dense, stored)
            assert dense.isfinite().all()


def assert_log_prob_is(likelihood: Likelihood, distribution: torch.distributions.Distribution) -> None:
    """Check that the log-probability is the sum over the observed entries of a distribution's."""
    values = torch.from_numpy(counts()).clamp(max=1.0)
    target = values.clone()
    target[0, :2] = float("nan")
    expected = distribution.log_prob(values)
    torch.testing.assert_close(likelihood.log_prob(outputs(), DenseRows(values)), expected.sum(1))
    expected = torch.where(target.isnan(), 0.0, expected)
    torch.testing.assert_close(likelihood.log_prob(outputs(), DenseRows(target).mask_missing()), expected.sum(1))


def assert_samples_have_moments(
    likelihood: Likelihood, mean: torch.Tensor, variance: torch.Tensor, totals: torch.Tensor | None = None
) -> None:
    """Check that `mean` and the samples agree with the mean and variance of the distribution."""
    given = outputs().detach()
    torch.testing.assert_close(likelihood.mean(given, totals), mean)
    repeated = given.repeat_interleave(4000, 0)
    repeated_totals = None if totals is None else totals.repeat_interleave(4000, 0)
    drawn = likelihood.sample(repeated, np.random.default_rng(0), repeated_totals).view(4, 4000, 6)
    assert drawn.dtype == given.dtype
    error = (drawn.mean(1) - mean).abs() / (variance / 4000).sqrt()
    assert float(error.max()) < 4.5
    torch.testing.assert_close(drawn.var(1), variance, rtol=0.25, atol=0.02)
