from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.scoring import assignment
from corrvae.scoring.assignment import assign
from corrvae.scoring.metrics import make_metric
from support.literal_scores import NAMES, literal_scores, random_points


def best_sum(costs):
    """By enumeration; there are no more rows than columns."""
    rows = np.arange(len(costs))
    return min(costs[rows, list(chosen)].sum() for chosen in permutations(range(costs.shape[1]), len(costs)))


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_the_matching_is_the_best_of_all(name, n_left, n_right, seed):
    left, right = random_points(n_left, 3, seed, repeats=0.3), random_points(n_right, 3, seed + 1, repeats=0.3)
    tau = np.full(3, 0.9)
    metric = make_metric(name, tau)
    found = assign(left, right, metric)
    costs = metric.sign * literal_scores(name, left, right, tau)
    assert found.exact
    assert len(found.pairs) == min(n_left, n_right)
    for side in (0, 1):
        assert len(set(found.pairs[:, side])) == len(found.pairs)
    assert (np.diff(found.pairs[:, 0]) > 0).all()
    expected = metric.sign * costs[found.pairs[:, 0], found.pairs[:, 1]]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-9, atol=1e-9)
    least = best_sum(costs if n_left <= n_right else costs.T)
    assert (metric.sign * found.scores).sum() == pytest.approx(least, abs=1e-9)


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(1, 4), st.integers(5, 7), st.integers(0, 10**6), st.booleans())
def test_among_candidates_it_is_the_best_too(name, n_few, n_many, seed, turned):
    few, many = random_points(n_few, 3, seed), random_points(n_many, 3, seed + 1)
    tau = np.full(3, 0.9)
    metric = make_metric(name, tau)
    found = assign(many, few, metric, n_candidates=2) if turned else assign(few, many, metric, n_candidates=2)
    costs = metric.sign * literal_scores(name, few, many, tau)
    for n_candidates in (2, 4, 8):
        admitted = np.argsort(np.argsort(costs, axis=1), axis=1) < n_candidates
        least = best_sum(np.where(admitted, costs, np.inf))
        if np.isfinite(least):
            break
    assert (metric.sign * found.scores).sum() == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_few_candidates_are_enough_where_partners_are_near(monkeypatch, name, turned):
    rng = np.random.default_rng(0)
    many = random_points(60, 8, 0)
    few = many.take(rng.permutation(60)[:40])
    few.mean[:] += 0.01 * rng.normal(size=few.mean.shape).astype(np.float32)
    left, right = (many, few) if turned else (few, many)
    metric = make_metric(name, np.full(8, 0.9))
    whole = assign(left, right, metric)
    monkeypatch.setattr(assignment, "_MOST_PAIRS", 100)
    monkeypatch.setattr(assignment, "_CANDIDATES", 3)
    found = assign(left, right, metric)
    assert not found.exact
    assert (np.diff(found.pairs[:, 0]) > 0).all()
    if name == "mean_distance":
        np.testing.assert_array_equal(found.pairs, whole.pairs)
    np.testing.assert_allclose(found.scores, metric.parts(left, right, found.pairs).score, rtol=1e-12)


def test_candidates_are_doubled_until_everyone_has_a_partner():
    left, right = random_points(20, 2, 0), random_points(20, 2, 1)
    left.mean[:] *= 0.01  # all have the same nearest candidates
    found = assign(left, right, make_metric("mean_distance", np.full(2, 0.9)), n_candidates=1)
    assert sorted(found.pairs[:, 1]) == list(range(20))
