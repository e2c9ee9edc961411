import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.isotonic import IsotonicRegression

from corrvae import CorrelatedVAE, Independent, load
from corrvae.datasets import halve_users
from corrvae.experiments.baselines import halves_plda
from corrvae.model import Posterior, TrainingData, build_model
from corrvae.model.linear import _RIDGES, LinearSolution, solve_edges, solve_linear
from corrvae.nn import FeatureTable, InputTransform
from corrvae.scoring import make_metric, score_matrix

PAIRS = np.arange(600).reshape(300, 2)


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
    expected = solve_linear(between - np.outer(mean, mean), total - np.outer(mean, mean), mean, 3, ridge=_RIDGES[2])
    found = halves_plda(items, 3, ridge=_RIDGES[2])
    np.testing.assert_allclose(found.mean, expected.mean, atol=4e-3)
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=0.02)
    kernel, other = (s.directions @ np.diag(s.correlation) @ s.directions.T for s in (found, expected))
    np.testing.assert_allclose(kernel, other, atol=0.05 * np.abs(other).max())


def paired(n=400, n_features=12, seed=0):
    """Points two by two with a part in common."""
    generator = np.random.default_rng(seed)
    loadings, noise = generator.normal(size=(2, n_features)), generator.normal(size=(n_features, n_features))
    common = np.repeat(generator.normal(size=(n, 2)), 2, axis=0)
    X = common @ loadings + 0.7 * generator.normal(size=(2 * n, n_features)) @ noise + 5.0
    return X, np.arange(2 * n).reshape(n, 2)


@given(st.integers(0, 20))
def test_the_solution_of_a_graph_is_that_of_dense_scatters(seed):
    X, edges = paired(40, 6, seed)
    weights = np.random.default_rng(seed).random(len(edges)) + 0.1
    found = solve_edges(TrainingData(FeatureTable(X), edges, weights), InputTransform("none"), 2)
    both = np.concatenate([edges, edges[:, ::-1]])
    covariance = np.cov(X[both].reshape(len(both), -1).T, aweights=np.tile(weights, 2), bias=True)
    expected = solve_linear(covariance[:6, 6:], covariance[:6, :6], X.mean(0), 2, ridge=_RIDGES[2])
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=1e-4)
    np.testing.assert_allclose(np.abs(found.directions), np.abs(expected.directions), atol=1e-3)


def test_wide_sparse_tables_are_solved_in_a_subspace(monkeypatch):
    generator = np.random.default_rng(0)
    tastes = np.repeat(generator.normal(size=(300, 2)), 2, axis=0)
    chances = 0.4 / (1 + np.exp(-tastes @ generator.normal(size=(2, 40))))
    data = TrainingData(FeatureTable(sparse.csr_array((generator.random((600, 40)) < chances) * 1.0)), PAIRS)
    whole = solve_edges(data, InputTransform("l2"), 2)
    monkeypatch.setattr("corrvae.model.linear._FEATURES", 39)
    monkeypatch.setattr("corrvae.model.linear._DIRECTIONS", 40)  # all: nothing is lost
    np.testing.assert_allclose(solve_edges(data, InputTransform("l2"), 2).correlation, whole.correlation, atol=1e-4)


@pytest.mark.parametrize("is_paired", [True, False])
def test_edges_held_out_choose_the_ridge_and_tell_variances_and_correlations(is_paired):
    X, edges = paired(300, 30)
    if not is_paired:  # a ring with second neighbours
        edges = np.concatenate([np.stack([np.arange(600), (np.arange(600) + k) % 600], axis=1) for k in (1, 2)])
    found = solve_edges(TrainingData(FeatureTable(X), edges), InputTransform("none"), 4)
    order = np.random.default_rng(0).permutation(len(edges))
    n_held, apart = len(edges) // 5, []
    while len(apart) < len(edges) / 2:
        ends = set(edges[order[:n_held]].ravel())
        apart = [e for e in order if not ends & set(edges[e])]
        n_held, held = n_held // 2, order[:n_held]
    assert len(held) == (60 if is_paired else 120)

    def moments(chosen):
        pairs = np.concatenate([edges[chosen], edges[chosen, ::-1]])
        both = np.cov(X[pairs].reshape(len(pairs), -1).T, bias=True)
        return both[:30, 30:], both[:30, :30], X[edges[chosen]].mean((0, 1))

    expected = {}
    for ridge in _RIDGES:
        W = solve_linear(*moments(apart), 4, ridge=ridge).directions
        between, total, _ = moments(held)
        variance = np.diag(W.T @ total @ W)
        correlation = IsotonicRegression(increasing=False).fit_transform(
            range(4), np.diag(W.T @ between @ W) / variance
        )
        correlation = correlation.clip(1e-3, 0.999)
        directions = solve_linear(*moments(order), 4, ridge=ridge).directions / np.sqrt(variance)
        expected[-0.5 * np.log(1 - correlation**2).sum()] = directions, correlation
    directions, correlation = expected[max(expected)]
    np.testing.assert_allclose(found.correlation, correlation, atol=1e-4)
    np.testing.assert_allclose(np.abs(found.directions), np.abs(directions), atol=1e-3)
    if is_paired:
        assert correlation[2] < 0.3 < correlation[1]  # two dimensions are shared, and the data have no more


def test_edges_that_share_an_end_with_those_held_out_do_not_choose():
    X = np.random.default_rng(0).normal(size=(40, 3))
    star = np.column_stack([np.zeros(39, int), np.arange(1, 40)])
    data = TrainingData(FeatureTable(X), np.concatenate([star] * 4))
    found = solve_edges(data, InputTransform("none"), 2)  # nothing is left to solve from: as if nothing were held out
    both = np.concatenate([star, star[:, ::-1]])
    covariance = np.cov(X[both].reshape(len(both), -1).T, bias=True)
    expected = solve_linear(covariance[:3, 3:], covariance[:3, :3], np.zeros(3), 2, ridge=_RIDGES[2])
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=1e-4)


def test_features_drawn_anew_are_averaged_over():
    items = np.random.default_rng(0).random((90, 12)) < 0.5
    items[:, :2] = True
    users = halve_users(items, random_state=0)
    data = TrainingData(FeatureTable(users.features), users.graph.edges, augment=users.redraw)
    expected = halves_plda(items, 2, ridge=_RIDGES[2]).correlation
    np.testing.assert_allclose(solve_edges(data, InputTransform("l2"), 2).correlation, expected, atol=0.05)


@pytest.mark.parametrize("hidden", [(), (8,)])
@pytest.mark.parametrize("tau", [0.9, "learned", "learned_per_dimension"])
def test_a_model_starts_at_the_linear_solution(hidden, tau):
    X, edges = paired()
    table = FeatureTable(X.astype(np.float32))
    model = build_model(12, 3, family=Independent(), hidden=hidden, tau=tau, init="linear")
    model.start_linear(TrainingData(table, edges))
    solution = solve_edges(TrainingData(table, edges), model.inputs, 3)
    z = (X - solution.mean) @ solution.directions
    mean, stddev = model.encode(table)
    scale, expected, at = solution.marginals(None if tau == "learned_per_dimension" else model.tau_values(3))
    np.testing.assert_allclose(mean, z * scale, atol=2e-3)
    np.testing.assert_allclose(stddev, np.tile(expected, (len(X), 1)), atol=1e-3)
    np.testing.assert_allclose(model.tau_values(3), at, atol=1e-5)


def test_more_dimensions_than_features_leave_the_others_as_they_were():
    X, edges = paired(50, 4)
    model = CorrelatedVAE(6, init="linear", max_steps=1, hidden=(5,), random_state=0).fit(X, graph=edges)
    assert model.embedding_.shape == (100, 6)


def test_the_start_needs_edges_and_survives_saving(tmp_path):
    X, edges = paired(50, 4)
    with pytest.raises(ValueError, match="solved from edges, and there are none"):
        CorrelatedVAE(2, init="linear", max_steps=1).fit(X)
    model = CorrelatedVAE(2, init="linear", max_steps=1, random_state=0).fit(X, graph=edges)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(X), model.transform(X))


def test_a_linear_start_matches_before_the_first_steps():
    X, edges = paired()
    found = {}
    for init in ("random", "linear"):
        model = CorrelatedVAE(3, init=init, max_steps=1, learning_rate=1e-6, tau=0.9, random_state=0)
        found[init] = np.mean(1 / model.fit(X, graph=edges).rank_pairs(edges, metric="log_odds").ranks)
    assert found["linear"] > 2 * found["random"]
