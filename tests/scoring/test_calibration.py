"""Probabilities of links against Bayes' rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.model.posterior import Posterior
from corrvae.scoring import calibrate, calibrate_links, random_unlinked, score
from corrvae.scoring.calibration import calibration_error


def normal_scores(seed, n_linked, n_unlinked, sign=1.0):
    """The log likelihood ratio of N(1, 1) against N(-1, 1) at a score is twice the score."""
    rng = np.random.default_rng(seed)
    return sign * rng.normal(1, 1, n_linked), sign * rng.normal(-1, 1, n_unlinked)


@pytest.mark.parametrize("prior", [0.5, 0.01])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_probabilities_are_those_of_bayes(sign, prior):
    linked, unlinked = normal_scores(0, 4000, 40_000, sign)
    found = calibrate(linked, unlinked, metric="m", larger_is_better=sign > 0, prior=prior)
    scores = np.linspace(-1.0, 1.0, 9)
    odds = prior / (1 - prior) * np.exp(2 * scores)
    np.testing.assert_allclose(found(sign * scores), odds / (1 + odds), atol=0.03)
    assert (found.n_linked, found.n_unlinked, found.prior) == (4000, 40_000, prior)


def test_calibrated_on_one_half_it_holds_on_the_other():
    linked, unlinked = normal_scores(1, 3000, 27_000)
    found = calibrate(linked[::2], unlinked[::2], metric="m", larger_is_better=True, prior=0.1)
    scores, truth = np.concatenate([linked[1::2], unlinked[1::2]]), np.repeat([1, 0], [1500, 13_500])
    given_ = found(scores)
    for low, high in ((0.0, 0.05), (0.05, 0.3), (0.3, 0.7), (0.7, 1.0)):
        inside = (given_ >= low) & (given_ < high)
        assert truth[inside].mean() == pytest.approx(given_[inside].mean(), abs=0.05)


def test_the_prior_can_be_changed_afterwards():
    linked, unlinked = normal_scores(0, 50, 500)
    options = {"metric": "m", "larger_is_better": True}
    first, second = (calibrate(linked, unlinked, prior=prior, **options) for prior in (0.5, 0.02))
    np.testing.assert_allclose(first.with_prior(0.02)(linked), second(linked))


@pytest.mark.parametrize("larger_is_better", [True, False])
def test_worse_scores_never_make_a_link_likelier(larger_is_better):
    # The links have the worse scores.
    linked, unlinked = normal_scores(0, 300, 300, -1.0 if larger_is_better else 1.0)
    found = calibrate(linked, unlinked, metric="m", larger_is_better=larger_is_better, prior=0.2)
    np.testing.assert_allclose(found(linked), 0.2)


@settings(max_examples=50)
@given(st.integers(2, 8), st.integers(0, 10**6))
def test_unlinked_pairs_are_not_linked(n_points, seed):
    rng = np.random.default_rng(seed)
    linked = rng.integers(n_points, size=(rng.integers(1, 20), 2))
    everything = {(i, j) for i in range(n_points) for j in range(i + 1, n_points)}
    free = everything - {tuple(sorted(pair)) for pair in linked.tolist()}
    if not free:
        with pytest.raises(ValueError, match="every pair"):
            random_unlinked(n_points, linked, 5, rng)
        return
    drawn = random_unlinked(n_points, linked, 200, rng)
    assert drawn.shape == (200, 2)
    assert {tuple(pair) for pair in drawn.tolist()} <= free


def test_what_cannot_be_calibrated():
    some = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="at least 2 linked"):
        calibrate(some[:1], some, metric="m", larger_is_better=True, prior=0.5)
    with pytest.raises(ValueError, match="finite"):
        calibrate(np.array([1.0, np.nan]), some, metric="m", larger_is_better=True, prior=0.5)
    for prior in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="strictly between"):
            calibrate(some, some, metric="m", larger_is_better=True, prior=prior)


def pairs_of_neighbors(n):
    """Points on a line, each linked with its twin nearby."""
    rng = np.random.default_rng(0)
    mean = np.repeat(np.arange(n / 2), 2)[:, None] + 0.1 * rng.normal(size=(n, 1))
    ids = np.array([f"v{i}" for i in range(n)], dtype=object)
    return Posterior(mean, np.full((n, 1), 0.1), ids=ids), np.arange(n).reshape(-1, 2)


def test_links_of_a_posterior():
    points, links = pairs_of_neighbors(200)
    options = {"random_state": 0}
    found = calibrate_links(points, links[:60], "mean_distance", edges=links[60:], **options)
    assert found.prior == pytest.approx(100 / (200 * 199 / 2))
    assert (found.n_linked, found.n_unlinked, found.metric) == (60, 1000, "mean_distance")
    even = found.with_prior(0.5)
    assert np.median(even(score(points, points, "mean_distance", links))) > 0.7
    assert even(np.array([5000.0]))[0] < 0.1
    again = calibrate_links(points, links[:60], "mean_distance", edges=links[60:], **options)
    assert found.slope == again.slope
    given_ = calibrate_links(points, links[:60], "mean_distance", edges=links[60:], prior=0.3, n_unlinked=50)
    assert (given_.prior, given_.n_unlinked) == (0.3, 50)


def test_links_that_say_nothing():
    points, _ = pairs_of_neighbors(4)
    seen = np.array([[1, 2]])
    with pytest.raises(ValueError, match=r"link 1, \('v2', 'v1'\), is an edge of training; calibrate with held-out"):
        calibrate_links(points, np.array([[0, 1], [2, 1]]), "cosine", edges=seen)
    with pytest.raises(ValueError, match=r"link 1, \('v3', 'v3'\), joins a point with itself"):
        calibrate_links(points, np.array([[0, 1], [3, 3]]), "cosine", edges=seen)


@pytest.mark.parametrize("prior", [0.5, 0.02])
def test_the_error_of_a_calibration_is_small_where_it_is_right_and_that_of_the_prior_where_it_is_not(prior):
    found = calibrate(*normal_scores(4, 4000, 40_000), metric="m", larger_is_better=True, prior=prior)
    linked, unlinked = normal_scores(5, 4000, 40_000)
    assert calibration_error(found, linked, unlinked) < 0.02 * min(1.0, 10 * prior)
    # one bin: the mean probability less the prior
    wrong, pairs = found.with_prior(0.8), np.concatenate([linked, unlinked])
    weights = np.repeat([0.8 / len(linked), 0.2 / len(unlinked)], [len(linked), len(unlinked)])
    expected = abs(weights @ wrong(pairs) - 0.8)
    assert calibration_error(wrong, linked, unlinked, n_bins=1) == pytest.approx(expected)
