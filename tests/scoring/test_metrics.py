import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from corrvae.scoring.metrics import Cosine, ExpectedDistance, LogOdds, MeanDistance, Parts, make_metric, side
from corrvae.scoring.points import Points
from support.literal_scores import NAMES, literal_scores, random_points
from support.unchecked import unchecked


def all_pairs(n_left, n_right):
    return np.stack(np.divmod(np.arange(n_left * n_right), n_right), axis=1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [1, 3, 4, 17, 40])
def test_scores_are_those_of_the_formulas(name, dim):
    left, right = random_points(6, dim, 0, zeros=0.2), random_points(5, dim, 1, zeros=0.2)
    tau = np.linspace(-0.99, 0.99, dim)
    parts = make_metric(name, tau).parts(left, right, all_pairs(6, 5))
    np.testing.assert_allclose(parts.score.reshape(6, 5), literal_scores(name, left, right, tau), rtol=1e-9, atol=1e-9)
    assert not parts.correlation.any()


def test_parts_of_the_expected_distance():
    left, right = random_points(4, 3, 0), random_points(4, 3, 1)
    rho = np.tanh(np.random.default_rng(2).normal(size=(4, 4, 3)))
    pairs = all_pairs(4, 4)
    parts = ExpectedDistance().parts(left, right, pairs, rho.reshape(-1, 3))
    expected = literal_scores("expected_distance", left, right, correlation=rho)
    np.testing.assert_allclose(parts.score.reshape(4, 4), expected, rtol=1e-12)
    np.testing.assert_allclose(parts.mean.reshape(4, 4), literal_scores("mean_distance", left, right), rtol=1e-12)
    plain = literal_scores("expected_distance", left, right)
    np.testing.assert_allclose((parts.mean + parts.variance).reshape(4, 4), plain, rtol=1e-12)


def test_the_expected_distance_is_an_expectation():
    rng = np.random.default_rng(0)
    points = random_points(2, 2, 5)
    rho = np.array([0.8, -0.5])
    x = rng.standard_normal((400_000, 2))
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(x.shape)
    z = (points.mean[0] + points.stddev[0] * x) - (points.mean[1] + points.stddev[1] * y)
    found = ExpectedDistance().parts(points, points, np.array([[0, 1]]), rho[None]).score[0]
    assert (z**2).sum(1).mean() == pytest.approx(found, rel=0.01)


CASES = [((0.3, -1.0), (0.5, 0.9)), ((1.5, 1.4), (0.2, 0.3)), ((2.0, 0.0), (1.0, 0.7))]


@pytest.mark.parametrize("tau", [0.9, -0.6, 0.0])
@pytest.mark.parametrize(("mean", "stddev"), CASES)
def test_log_odds_are_the_integral(tau, mean, stddev):
    points = Points.of(np.array(mean)[:, None], np.array(stddev)[:, None])
    # As the points have them: rounded to float32.
    (m, n), (s, t) = points.mean[:, 0].astype(float), points.stddev[:, 0].astype(float)
    x, y = (np.linspace(c - 12 * w, c + 12 * w, 1501) for c, w in ((m, s), (n, t)))
    joint = multivariate_normal([0, 0], [[1, tau], [tau, 1]])
    log_ratio = joint.logpdf(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1))
    log_ratio -= norm.logpdf(x)[:, None] + norm.logpdf(y)[None]
    integrand = np.exp(norm.logpdf(x, m, s)[:, None] + norm.logpdf(y, n, t)[None] + log_ratio)
    value = integrand.sum() * (x[1] - x[0]) * (y[1] - y[0])
    found = LogOdds(np.array([tau])).parts(points, points, np.array([[0, 1]])).score[0]
    assert found == pytest.approx(np.log(value), abs=1e-8)


def test_log_odds_of_several_dimensions_are_those_of_each():
    points, tau = random_points(2, 5, 0), np.array([0.9, 0.1, -0.4, 0.99, 0.0])
    pair = np.array([[0, 1]])
    single = [Points(points.mean[:, [k]], points.stddev[:, [k]]) for k in range(5)]
    each = [LogOdds(tau[k : k + 1]).parts(single[k], single[k], pair) for k in range(5)]
    whole = LogOdds(tau).parts(points, points, pair)
    assert whole.mean[0] == pytest.approx(sum(part.mean[0] for part in each))
    assert whole.variance[0] == pytest.approx(sum(part.variance[0] for part in each))


@given(st.integers(0, 10**6), st.sampled_from(NAMES))
def test_scores_are_symmetric_to_the_bit_and_equal_for_equal_points(seed, name):
    points = random_points(5, 7, seed, repeats=0.5)
    metric = make_metric(name, np.linspace(-0.9, 0.999, 7))
    scores = metric.parts(points, points, all_pairs(5, 5)).score.reshape(5, 5)
    np.testing.assert_array_equal(scores, scores.T)
    for i in range(5):
        for j in range(5):
            if (points.mean[i] == points.mean[j]).all() and (points.stddev[i] == points.stddev[j]).all():
                np.testing.assert_array_equal(scores[i], scores[j])


@pytest.mark.parametrize(("name", "share"), [(name, 0.6 if name == "log_odds" else 0.999) for name in NAMES])
def test_proxies_order_candidates_much_as_the_metric_does(name, share):
    points = random_points(300, 6, 0)
    points = Points(points.mean, 0.3 * points.stddev)
    metric = make_metric(name, np.full(6, 0.95))
    as_queries, as_candidates = metric.proxies(points, points)
    near = ((as_queries[:, None].astype(float) - as_candidates[None]) ** 2).sum(-1)
    costs = metric.sign * literal_scores(name, points, points, np.full(6, 0.95))
    best, proposed = np.argsort(costs, axis=1)[:, :10], np.argsort(near, axis=1)[:, :20]
    assert np.mean([len(np.intersect1d(b, p)) / 10 for b, p in zip(best, proposed, strict=True)]) >= share


def test_names_and_directions():
    tau = np.full(2, 0.5)
    assert [make_metric(name, tau).name for name in NAMES] == NAMES
    assert [make_metric(name, tau).larger_is_better for name in NAMES] == [False, True, False, True]
    assert [make_metric(name, tau).uses_correlation for name in NAMES] == [True, False, False, False]
    own = Cosine()
    assert make_metric(own, tau) is own
    assert (own.sign, MeanDistance().sign) == (-1.0, 1.0)
    with pytest.raises(ValueError, match="not 'euclid'"):
        make_metric("euclid", tau)
    with pytest.raises(ValueError, match="strictly between"):
        LogOdds(np.array([1.0]))


def test_parts_sum_and_sides_hold_variances():
    assert Parts(np.ones(2), np.full(2, 2.0), np.full(2, -0.5)).score.tolist() == [2.5, 2.5]
    points = random_points(3, 4, 0)
    np.testing.assert_allclose(side(points).variance, (points.stddev.astype(float) ** 2).sum(1), rtol=1e-15)


def test_points_and_tau_must_have_the_same_dimensions():
    points, narrow, pair = random_points(3, 4, 0), random_points(3, 2, 0), np.array([[0, 1]])
    for tau in (np.full(1, 0.9), np.full(6, 0.9)):
        metric = LogOdds(tau)
        for ask in (metric.blocks, metric.proxies, lambda *sides, metric=metric: metric.parts(*sides, pair)):
            with pytest.raises(ValueError, match=f"tau has {len(tau)} entries, but the points have 4 dimensions"):
                ask(points, points)
    for name in NAMES:
        with pytest.raises(ValueError, match="queries have 4 dimensions, but candidates have 2"):
            make_metric(name, np.full(4, 0.9)).parts(points, narrow, pair)
    with unchecked(), pytest.raises(ValueError, match="one entry for each latent dimension"):
        LogOdds(np.array(0.9))
