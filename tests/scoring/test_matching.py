"""Matchings against enumeration."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.model.posterior import Posterior
from corrvae.scoring import METRICS, assign, match, matching, score
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


# Calipers, ratios, like values


def best_of_all(costs, worst, ratio):
    """By enumeration: the most pairs, then the most left points with a partner, then the least sum of costs."""
    n_left, n_right = costs.shape
    subsets = [subset for size in range(ratio + 1) for subset in combinations(range(n_right), size)]

    def search(row, taken):
        if row == n_left:
            return (0, 0, 0.0)
        found = []
        for subset in subsets:
            if taken & set(subset) or any(costs[row, column] > worst for column in subset):
                continue
            pairs, lefts, total = search(row + 1, taken | set(subset))
            found.append((pairs - len(subset), lefts - bool(subset), total + costs[row, list(subset)].sum()))
        return min(found)

    return search(0, set())


def between(costs, share):
    """Return a caliper between two costs that occur, so that rounding cannot decide."""
    distinct = np.unique(costs.ravel().round(5))
    bounds = np.concatenate([distinct[:1] - 1, (distinct[1:] + distinct[:-1]) / 2, distinct[-1:] + 1])
    return bounds[int(share * (len(bounds) - 1))]


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 3),
    st.floats(0, 1),
    st.sampled_from([None, 2]),
    st.integers(0, 10**6),
)
def test_a_caliper_and_a_ratio_against_enumeration(name, n_left, n_right, ratio, share, n_candidates, seed):
    left, right = random_points(n_left, 2, seed, repeats=0.3), random_points(n_right, 2, seed + 1, repeats=0.3)
    literal = literal_scores(name, left, right)
    costs, sign = literal_costs(name, literal), METRICS[name].sign
    worst = between(costs, share)
    pairs, scores, exact = assign(left, right, name, caliper=sign * worst, ratio=ratio, n_candidates=n_candidates)
    chosen = costs[tuple(pairs.T)]
    assert (chosen <= worst).all()
    assert len(set(pairs[:, 1])) == len(pairs)
    assert np.bincount(pairs[:, 0], minlength=1).max() <= ratio
    np.testing.assert_allclose(scores, sign * chosen, rtol=1e-9, atol=1e-9)
    found = (-len(pairs), -len(set(pairs[:, 0])), chosen.sum())
    best = best_of_all(costs, worst, ratio)
    assert found >= (*best[:2], best[2] - 1e-4)
    if exact:
        assert found[:2] == best[:2]
        assert found[2] == pytest.approx(best[2], abs=1e-4)
    assert exact or n_candidates == 2


def test_a_pair_exactly_at_the_caliper_may_be():
    left, right = on_a_line([10.1, 20.3], [11.3, 22.7])
    caliper = float(score(left, right, "mean_distance", np.array([[0, 0]]))[0])
    assert assign(left, right, "mean_distance", caliper=caliper)[0].tolist() == [[0, 0]]
    assert len(assign(left, right, "mean_distance", caliper=np.nextafter(caliper, 0))[0]) == 0


def test_candidates_are_exact_where_the_caliper_cuts_their_lists():
    rng = np.random.default_rng(0)
    left, right = on_a_line(rng.uniform(0, 100, 300), rng.uniform(0, 100, 400))
    whole = assign(left, right, "mean_distance", caliper=0.04)
    few = assign(left, right, "mean_distance", caliper=0.04, n_candidates=12)
    assert (whole[2], few[2]) == (True, True)
    assert 100 < len(few[0]) == len(whole[0]) < 300
    assert few[1].sum() == pytest.approx(whole[1].sum())
    assert not assign(left, right, "mean_distance", n_candidates=12)[2]


def named(left, right, seed=0):
    """Points a0, a1, ... and b0, b1, ... at given places, shuffled."""
    names = np.array([f"a{k}" for k in range(len(left))] + [f"b{k}" for k in range(len(right))], dtype=object)
    mean = np.concatenate([left, right]).reshape(len(names), -1)
    order = np.random.default_rng(seed).permutation(len(names))
    points = Posterior(mean[order], np.full_like(mean, 0.5), ids=names[order], tau=np.full(mean.shape[1], 0.9))
    return points, names[: len(left)].tolist(), names[len(left) :].tolist()


def test_points_without_a_partner_are_listed_with_the_reason():
    points, left, right = named([0.0, 0.1, 5.0, 9.0], [0.2, 5.1, 50.0, 5.2])
    kinds = dict(zip([*left, *right], ["x", "x", "x", "z", "x", "x", "x", "y"], strict=True))
    found = match(points, left, right, "mean_distance", caliper=1.0, exact_on=kinds)
    assert found.id_pairs.tolist() == [["a1", "b0"], ["a2", "b1"]]
    like, reach, taken = matching.NO_LIKE, matching.OUT_OF_REACH, matching.TAKEN
    assert found.unmatched == {"a0": taken, "a3": like, "b2": reach, "b3": like}
    again = match(points, left, right, "mean_distance", caliper=1.0, exact_on=kinds, replace=True)
    assert again.id_pairs.tolist() == [["a0", "b0"], ["a1", "b0"], ["a2", "b1"]]
    assert again.unmatched == {"a3": like, "b2": reach, "b3": like}
    assert repr(again) == "Matches(3 pairs, mean_distance)"
    nobody = match(points, left[:1], right[2:], "mean_distance", caliper=1.0)
    assert (len(nobody), nobody.to_table().num_rows) == (0, 0)
    assert set(nobody.weights.values()) == {0.0}


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
    st.integers(1, 3),
    st.floats(0.2, 1),
    st.integers(0, 10**6),
)
def test_matches_against_their_definitions(name, n_left, n_right, ratio, replace, n_kinds, share, seed):
    rng = np.random.default_rng(seed)
    points, left, right = named(rng.normal(size=(n_left, 3)), rng.normal(size=(n_right, 3)), seed=seed)
    kinds = rng.integers(0, n_kinds, n_left + n_right)
    where = points.positions([*left, *right])
    sides = points.take(where[:n_left]), points.take(where[n_left:])
    sign = METRICS[name].sign
    costs = literal_costs(name, literal_scores(name, *sides))
    worst = between(costs, share)
    exact_on = dict(zip([*left, *right], kinds.tolist(), strict=True))
    found = match(points, left, right, name, caliper=sign * worst, ratio=ratio, replace=replace, exact_on=exact_on)
    like = kinds[:n_left, None] == kinds[n_left:]
    allowed = like & (costs <= worst)
    pairs = {(left.index(a), right.index(b)) for a, b in found.id_pairs}
    assert all(allowed[pair] for pair in pairs)
    if replace:
        for row in range(n_left):
            nearest = [k for k in np.argsort(costs[row], kind="stable") if allowed[row, k]][:ratio]
            assert {k for row_of, k in pairs if row_of == row} == set(nearest)
    else:
        best = best_of_all(np.where(allowed, costs, np.inf), 1e9, ratio)
        total = sum(costs[pair] for pair in pairs)
        assert (-len(pairs), -len({row for row, _ in pairs})) == best[:2]
        assert total == pytest.approx(best[2], abs=1e-4)
    for (a, b), margin in zip(found.id_pairs, found.margins, strict=True):
        row = left.index(a)
        others = [k for k in range(n_right) if like[row, k] and (row, k) not in pairs]
        expected = min(costs[row, others]) - costs[row, right.index(b)] if others else np.nan
        assert margin == pytest.approx(expected, abs=1e-5, nan_ok=True)
    for axis, names in enumerate((left, right)):
        matched = {pair[axis] for pair in pairs}
        for k, point in enumerate(names):
            of_kind, within = like.take(k, axis), allowed.take(k, axis)
            reason = matching.TAKEN if within.any() else matching.OUT_OF_REACH if of_kind.any() else matching.NO_LIKE
            assert found.unmatched.get(point) == (None if k in matched else reason)
    weights = np.zeros(n_right)
    for row in range(n_left):
        own = [k for row_of, k in pairs if row_of == row]
        weights[own] += 1 / max(len(own), 1)
        assert found.weights[left[row]] == bool(own)
    np.testing.assert_allclose([found.weights[point] for point in right], weights, atol=1e-12)


def test_a_caliper_in_standard_deviations():
    rng = np.random.default_rng(0)
    left, right = rng.normal(2.0, 3.0, size=(40, 4)), rng.normal(size=(70, 4))
    points, *sides = named(left, right)
    variance = (left.var(axis=0) + right.var(axis=0)) / 2
    expected = {"mean_distance": 0.25 * variance.sum(), "expected_distance": 0.25 * variance.sum() + 2.0}
    for name, caliper in expected.items():
        found = match(points, *sides, name, caliper="0.5sd")
        assert found.caliper == pytest.approx(caliper, rel=1e-5)
        assert found.scores.max() <= found.caliper
    assert (
        match(points, *sides, "log_odds", caliper="0.2sd").caliper
        > match(points, *sides, "log_odds", caliper="2sd").caliper
    )
    for wrong in ("near", "-1sd", "sd", np.nan):
        with pytest.raises(ValueError, match=r"standard deviations as in '0.5sd', got"):
            match(points, *sides, "cosine", caliper=wrong)
    with pytest.raises(ValueError, match="ratio must be a positive number"):
        match(points, *sides, "cosine", ratio=0)


def test_common_support_is_where_right_points_are():
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal(size=60), [30.0, -30.0]])
    points, left, right = named(places, rng.normal(size=300))
    found = match(points, left, right, "mean_distance")
    assert found.left_ids.tolist() == left
    assert found.common_support[60:].tolist() == [False, False]
    assert found.common_support[:60].mean() > 0.9
    among = np.sort(np.abs(points.mean[points.positions(right)] - points.mean[points.positions(right)].T), axis=1)[:, 1]
    nearest = np.abs(places[:, None] - points.mean[points.positions(right)].T).min(axis=1)
    np.testing.assert_array_equal(found.common_support, nearest <= np.quantile(among**2, 0.99) ** 0.5)
    kinds = dict.fromkeys([*left, *right], "x") | {left[0]: "y"}
    assert not match(points, left, right, "mean_distance", exact_on=kinds).common_support[0]


def test_values_that_must_be_equal_come_in_many_forms():
    points, left, right = named([0.0, 1.0], [0.4, 1.4])
    towns = {"a0": "x", "a1": "y", "b0": "y", "b1": "x"}
    frame = pd.DataFrame({"town": towns, "old": dict.fromkeys(towns, 1)})
    in_order = [towns[name] for name in points.ids]
    for values in (towns, frame, frame["town"], in_order, np.array(in_order), frame.loc[points.ids].to_numpy()):
        found = match(points, left, right, "mean_distance", exact_on=values)
        assert found.id_pairs.tolist() == [["a0", "b1"], ["a1", "b0"]]
    with pytest.raises(ValueError, match="exact_on has no value for id 'b1'"):
        match(points, left, right, "mean_distance", exact_on=frame.drop(index="b1"))
    with pytest.raises(ValueError, match="exact_on has no value for id 'a1'"):
        match(points, left, right, "mean_distance", exact_on=towns | {"a1": None})
    with pytest.raises(ValueError, match="exact_on has 3 rows, but there are 4 points"):
        match(points, left, right, "mean_distance", exact_on=[1, 2, 3])
