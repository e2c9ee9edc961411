"""Metrics as functions of two blocks of points: what they stand for, and how exact they are."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from corrvae.model.posterior import Posterior
from corrvae.scoring import METRICS, Metric, make_metric, score, score_matrix
from support.literal_scores import NAMES, correlated_points, literal_scores, random_points
from support.unchecked import unchecked


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 9), spread=st.sampled_from([1e-3, 1.0, 10.0]))
@settings(max_examples=20)
def test_blocks_are_the_formulas(name, seed, dim, spread):
    tau = np.random.default_rng(seed).uniform(-0.99, 0.99, dim)
    left = random_points(6, dim, seed, spread=spread, zeros=0.2, tau=tau)
    right = random_points(5, dim, seed + 1, spread=spread, zeros=0.2, tau=tau)
    atol = 1e-5 * (1 + spread**2 * dim / 0.02)
    np.testing.assert_allclose(score_matrix(left, right, name), literal_scores(name, left, right), rtol=1e-5, atol=atol)


def test_the_expected_distance_is_an_expectation():
    points = correlated_points("perceptron", 2, dim=3, repeats=0.0)
    rng = np.random.default_rng(0)
    rho = np.tanh(points.pre_activation(np.array([[0, 1]])))[0]
    x = rng.standard_normal((400_000, 3))
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(x.shape)
    z = (points.mean[0] + points.stddev[0] * x) - (points.mean[1] + points.stddev[1] * y)
    assert (z**2).sum(1).mean() == pytest.approx(score_matrix(points, points, "expected_distance")[0, 1], rel=0.01)


CASES = [((0.3, -1.0), (0.5, 0.9)), ((1.5, 1.4), (0.2, 0.3)), ((2.0, 0.0), (1.0, 0.7))]


@pytest.mark.parametrize("tau", [0.9, -0.6, 0.0])
@pytest.mark.parametrize(("mean", "stddev"), CASES)
def test_log_odds_are_the_integral(tau, mean, stddev):
    """Of q_i(z) q_j(z') p0(z, z') / (p0(z) p0(z')), on a grid."""
    (m, n), (s, t) = mean, stddev
    x, y = (np.linspace(c - 12 * w, c + 12 * w, 1501) for c, w in ((m, s), (n, t)))
    joint = multivariate_normal([0, 0], [[1, tau], [tau, 1]])
    log_ratio = joint.logpdf(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1))
    log_ratio -= norm.logpdf(x)[:, None] + norm.logpdf(y)[None]
    integrand = np.exp(norm.logpdf(x, m, s)[:, None] + norm.logpdf(y, n, t)[None] + log_ratio)
    value = np.log(integrand.sum() * (x[1] - x[0]) * (y[1] - y[0]))
    points = Posterior(np.array(mean)[:, None], np.array(stddev)[:, None], tau=np.array([tau]))
    assert score(points, points, "log_odds", np.array([[0, 1]]))[0] == pytest.approx(value, abs=1e-8)
    assert score_matrix(points, points, "log_odds")[0, 1] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("tau", [0.9999, -0.9999, 1 - 1e-6])
@pytest.mark.parametrize("dim", [1, 2, 3, 7, 64])
def test_log_odds_of_blocks_keep_their_digits_near_the_ends_of_tau(tau, dim):
    """Plain float32 forms lose three digits at tau = 0.9999."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(30, dim)).astype(np.float32)
    mean[15:] = np.sign(tau) * mean[:15] + 0.01 * rng.normal(size=(15, dim)).astype(np.float32)
    stddev = np.exp(rng.uniform(-7.0, -2.0, size=mean.shape)).astype(np.float32)
    points = Posterior(mean, stddev, tau=np.full(dim, tau))
    literal = literal_scores("log_odds", points, points)
    pair = np.arange(15), np.arange(15, 30)  # linked points, whose terms are large and nearly cancel
    np.testing.assert_allclose(score_matrix(points, points, "log_odds")[pair], literal[pair], rtol=5e-6, atol=5e-6)


def test_log_odds_take_deviations_above_1_for_1():
    mean = np.array([[0.5], [-0.3]])
    wide, one = (Posterior(mean, np.full((2, 1), stddev), tau=np.array([0.9])) for stddev in (3.0, 1.0))
    np.testing.assert_array_equal(score_matrix(wide, wide, "log_odds"), score_matrix(one, one, "log_odds"))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_symmetric(name):
    points = random_points(20, 7, 0)
    pairs = np.stack(np.divmod(np.arange(400), 20), axis=1)
    scores = score(points, points, name, pairs).reshape(20, 20)
    np.testing.assert_allclose(scores, scores.T, rtol=1e-12, atol=1e-12)
    assert METRICS[name].is_symmetric


def test_expected_distance_of_correlated_points_cancels_nothing():
    """Where rho is nearly 1 and the points nearly agree, the distance is small, and still right."""
    points = correlated_points("metric", 2, dim=4, repeats=0.0)
    points._family.pair_network.start.data.fill_(8.0)  # 1 - rho is about 2e-7
    points.mean[1] = points.mean[0] + np.float32(1e-4)
    points.stddev[1] = points.stddev[0]
    with torch.no_grad():
        points._family.pair_network.slope.fill_(-50.0)
    exact = 4 * 1e-8 + 2 * ((1 - np.tanh(8.0)) * points.stddev[0].astype(float) ** 2).sum()
    assert score_matrix(points, points, "expected_distance")[0, 1] == pytest.approx(exact, rel=0.05)


def test_names_functions_and_metrics():
    assert [make_metric(name).name for name in NAMES] == NAMES
    own = Metric("own", METRICS["cosine"].function, larger_is_better=False)
    assert make_metric(own) is own
    assert own.sign == 1.0
    assert make_metric(METRICS["cosine"].function).name == "cosine"
    with pytest.raises(ValueError, match=r"one of expected_distance, log_odds, .* got 'euclid'"):
        make_metric("euclid")
    with unchecked(), pytest.raises(TypeError, match="a function of two blocks of points, got 3"):
        make_metric(3)


def test_a_metric_can_be_added_by_one_line(monkeypatch):
    def overlap(queries, candidates):
        return torch.minimum(queries.mean[:, None], candidates.mean).sum(2)

    monkeypatch.setitem(METRICS, "overlap", Metric("overlap", overlap, larger_is_better=True))
    points = random_points(5, 3, 0)
    literal = np.minimum(points.mean[:, None], points.mean).sum(2)
    np.testing.assert_allclose(score_matrix(points, points, "overlap"), literal, rtol=1e-6)
