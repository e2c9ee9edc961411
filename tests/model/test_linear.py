import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from corrvae.datasets import halve_users
from corrvae.experiments.baselines import halves_plda
from corrvae.model import Posterior
from corrvae.model.linear import LinearSolution, solve_linear
from corrvae.scoring import make_metric, score_matrix


def covariances(seed, n=5):
    """Cross and total covariance of the ends of an edge, of a factor model."""
    generator = np.random.default_rng(seed)
    loadings, noise = generator.normal(size=(n, 2)), generator.normal(size=(n, n))
    between = loadings @ loadings.T
    return between, between + noise @ noise.T / n


@given(st.integers(0, 200), st.integers(1, 5))
def test_coordinates_have_variance_one_and_the_correlation_found(seed, n_components):
    between, total = covariances(seed)
    solution = solve_linear(between, total, np.zeros(5), n_components, ridge=0.0)
    W = solution.directions
    np.testing.assert_allclose(W.T @ total @ W, np.eye(n_components), atol=1e-8)
    across = W.T @ between @ W
    np.testing.assert_allclose(np.diag(across).clip(1e-3, 0.999), solution.correlation, atol=1e-8)
    np.testing.assert_allclose(across - np.diag(np.diag(across)), 0.0, atol=1e-8)


@pytest.mark.parametrize("tau", [None, np.array([0.9, 0.95])])
def test_log_odds_are_those_of_the_linear_model(tau):
    between, total = covariances(0)
    solution = solve_linear(0.5 * between, total, np.zeros(5), 2, ridge=0.0)
    X = np.random.default_rng(1).multivariate_normal(np.zeros(5), total, 6)
    z = X @ solution.directions
    linked = np.block([[np.eye(2), np.diag(solution.correlation)], [np.diag(solution.correlation), np.eye(2)]])
    both = np.concatenate([np.repeat(z, 6, axis=0), np.tile(z, (6, 1))], axis=1)
    expected = multivariate_normal.logpdf(both, cov=linked) - multivariate_normal.logpdf(both, cov=np.eye(4))
    scale, stddev, tau = solution.marginals(tau)
    posterior = Posterior((z * scale).astype(np.float32), np.tile(stddev.astype(np.float32), (6, 1)), tau=tau)
    found = score_matrix(posterior, posterior, make_metric("log_odds"))
    np.testing.assert_allclose(found, expected.reshape(6, 6), rtol=1e-3, atol=1e-3)


def test_a_correlation_above_tau_is_kept_below_it():
    scale, stddev, _ = LinearSolution(np.eye(1), np.zeros(1), np.array([0.95])).marginals(np.array([0.9]))
    assert 0.99 < scale[0] < 1.0
    assert stddev[0] > 0.0


def test_expected_scatters_of_halves_are_averages_over_draws():
    items = np.random.default_rng(0).random((12, 5)) < 0.6
    items[:, :2] = True
    generator = np.random.default_rng(1)
    between, total, mean = np.zeros((5, 5)), np.zeros((5, 5)), np.zeros(5)
    for _ in range(8000):
        halves = halve_users(items, random_state=generator).features.toarray()
        y = halves / np.sqrt(halves.sum(1, keepdims=True))
        cross = y[::2].T @ y[1::2] / 12
        between, total, mean = between + (cross + cross.T) / 2, total + y.T @ y / 24, mean + y.mean(0)
    between, total, mean = between / 8000, total / 8000, mean / 8000
    expected = solve_linear(between - np.outer(mean, mean), total - np.outer(mean, mean), mean, 3, ridge=0.1)
    found = halves_plda(items, 3, ridge=0.1)
    np.testing.assert_allclose(found.mean, expected.mean, atol=4e-3)
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=0.02)
    kernel, other = (s.directions @ np.diag(s.correlation) @ s.directions.T for s in (found, expected))
    np.testing.assert_allclose(kernel, other, atol=0.05 * np.abs(other).max())
