"""One-to-one matchings against enumeration."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.model.posterior import Posterior
from corrvae.scoring import METRICS, assign, matching, score
from support.literal_scores import (
    NAMES,
    correlated_points,
    literal_correlation,
    literal_costs,
    literal_scores,
    random_points,
)


def best_sum(costs):
    """By enumeration; there are no more rows than columns."""
    rows = np.arange(len(costs))
    return min(costs[rows, list(chosen)].sum() for chosen in permutations(range(costs.shape[1]), len(costs)))


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_the_matching_is_the_best_of_all(name, n_left, n_right, seed):
    left, right = random_points(n_left, 3, seed, repeats=0.3), random_points(n_right, 3, seed + 1, repeats=0.3)
    pairs, scores, exact = assign(left, right, name)
    literal = literal_scores(name, left, right)
    costs = literal_costs(name, literal)
    assert exact
    assert len(pairs) == min(n_left, n_right)
    for side in (0, 1):
        assert len(set(pairs[:, side])) == len(pairs)
    assert (np.diff(pairs[:, 0]) > 0).all()
    np.testing.assert_allclose(scores, literal[tuple(pairs.T)], rtol=1e-9, atol=1e-9)
    least = best_sum(costs if n_left <= n_right else costs.T)
    assert (METRICS[name].sign * scores).sum() == pytest.approx(least, abs=1e-4)


@settings(max_examples=60)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(0, 2), st.integers(0, 10**6), st.booleans())
def test_among_candidates_it_is_the_best_too(name, n_few, n_more, seed, turned):
    n_many = max(n_few + n_more, 3)
    few, many = random_points(n_few, 3, seed), random_points(n_many, 3, seed + 1)
    pairs, scores, exact = (
        assign(many, few, name, n_candidates=2) if turned else assign(few, many, name, n_candidates=2)
    )
    costs = literal_costs(name, literal_scores(name, few, many))
    total, everyone = (METRICS[name].sign * scores).sum(), best_sum(costs)
    assert len(set(pairs[:, 0])) == len(set(pairs[:, 1])) == n_few
    assert total >= everyone - 1e-4
    assert exact == (n_few <= 2)
    if exact:
        assert total == pytest.approx(everyone, abs=1e-4)
    width = -(-2 * n_few // n_many)
    admitted = np.argsort(np.argsort(costs, axis=1), axis=1) < 2
    admitted |= np.argsort(np.argsort(costs, axis=0), axis=0) < width
    least = best_sum(np.where(admitted, costs, np.inf))
    if np.isfinite(least) and n_few > 2:
        assert total == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_few_candidates_are_enough_where_partners_are_near(monkeypatch, name, turned):
    rng = np.random.default_rng(0)
    many = random_points(60, 8, 0)
    few = many.take(rng.permutation(60)[:40])
    few.mean[:] += 0.01 * rng.normal(size=few.mean.shape).astype(np.float32)
    left, right = (many, few) if turned else (few, many)
    whole = assign(left, right, name)[0]
    monkeypatch.setattr(matching, "_MOST_PAIRS", 100)
    monkeypatch.setattr(matching, "_CANDIDATES", 3)
    pairs, scores, exact = assign(left, right, name)
    assert not exact
    assert (np.diff(pairs[:, 0]) > 0).all()
    if name == "mean_distance":
        np.testing.assert_array_equal(pairs, whole)
    np.testing.assert_allclose(scores, score(left, right, name, pairs), rtol=1e-12)


def on_a_line(*places):
    return (Posterior(np.array(place, float)[:, None], np.ones((len(place), 1))) for place in places)


def test_a_point_in_nobodys_list_is_matched():
    # The last right point is among the nearest of nobody, and must be taken.
    left, right = on_a_line([0, 1, 2, 3], [0.1, 1.1, 2.1, 50])
    pairs, _, exact = assign(left, right, "mean_distance", n_candidates=1)
    assert pairs.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert not exact


def test_pairs_that_cost_nothing_are_pairs():
    left, right = on_a_line([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0])
    pairs, _, _ = assign(left, right, "mean_distance", n_candidates=2)
    assert pairs.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("most_pairs", [4_000_000, 10])
@pytest.mark.parametrize("n_right", [40, 55])
def test_everyone_has_a_partner_where_all_want_the_same(monkeypatch, most_pairs, n_right):
    # Of two clouds side by side, few points are the nearest of all.
    left, right = on_a_line(np.linspace(0, 1, 40), np.linspace(10, 11, n_right))
    best = assign(left, right, "mean_distance")[1].sum()
    monkeypatch.setattr(matching, "_MOST_PAIRS", most_pairs)
    pairs, scores, _ = assign(left, right, "mean_distance", n_candidates=2)
    assert pairs[:, 0].tolist() == list(range(40))
    assert len(set(pairs[:, 1])) == 40
    assert best * (1 - 1e-6) <= scores.sum() < 1.1 * best


def test_as_many_candidates_as_points_on_the_smaller_side_are_exact():
    left, right = random_points(6, 2, 0), random_points(90, 2, 1)
    whole = assign(left, right, "mean_distance")[1].sum()
    for n_candidates in (6, 20, 90, 200):
        _, scores, exact = assign(right, left, "mean_distance", n_candidates=n_candidates)
        assert exact
        assert scores.sum() == pytest.approx(whole)
    assert not assign(left, right, "mean_distance", n_candidates=5)[2]


@pytest.mark.parametrize("n_candidates", [None, 5])
def test_correlations_count(n_candidates):
    points = correlated_points("bilinear", 25, repeats=0.0)
    left, right = np.arange(5), np.arange(5, 12)
    literal = literal_scores(
        "expected_distance", points.take(left), points.take(right), literal_correlation(points, left, right)
    )
    pairs, scores, _ = assign(points.take(left), points.take(right), "expected_distance", n_candidates=n_candidates)
    assert scores.sum() == pytest.approx(best_sum(literal), rel=1e-5)
    np.testing.assert_allclose(scores, literal[tuple(pairs.T)], rtol=1e-5)


def test_a_wrong_number_of_candidates():
    points = random_points(3, 2, 0)
    with pytest.raises(ValueError, match="n_candidates must be positive, got 0"):
        assign(points, points, "cosine", n_candidates=0)


def test_one_point_without_suitors_does_not_compare_all_pairs(monkeypatch):
    sizes = []

    def recorded(left, right, *arguments, **keywords):
        sizes.append(left.n_vertices * right.n_vertices)
        return original(left, right, *arguments, **keywords)

    original = matching.score_matrix
    monkeypatch.setattr(matching, "score_matrix", recorded)
    rng = np.random.default_rng(0)
    left = rng.normal(size=(300, 3))
    right = left + 0.01 * rng.normal(size=left.shape)
    right[:2] += 30  # in nobody's list
    stddev = np.ones_like(left)
    pairs, _, _ = assign(Posterior(left, stddev), Posterior(right, stddev), "mean_distance", n_candidates=4)
    assert len(set(pairs[:, 1].tolist())) == 300
    assert sum(sizes) <= 2 * 2
