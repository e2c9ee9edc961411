import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.monitor import STOP, Cancelled, Monitor
from corrvae.scoring import assignment
from corrvae.scoring.assignment import assign
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.points import Points
from support.literal_scores import NAMES, literal_scores, random_points
from support.unchecked import unchecked


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


@settings(max_examples=60)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(0, 2), st.integers(0, 10**6), st.booleans())
def test_among_candidates_it_is_the_best_too(name, n_few, n_more, seed, turned):
    n_many = max(n_few + n_more, 3)
    few, many = random_points(n_few, 3, seed), random_points(n_many, 3, seed + 1)
    tau = np.full(3, 0.9)
    metric = make_metric(name, tau)
    found = assign(many, few, metric, n_candidates=2) if turned else assign(few, many, metric, n_candidates=2)
    costs = metric.sign * literal_scores(name, few, many, tau)
    total, everyone = (metric.sign * found.scores).sum(), best_sum(costs)
    assert len(set(found.pairs[:, 0])) == len(set(found.pairs[:, 1])) == n_few
    assert total >= everyone - 1e-9
    assert found.exact == (n_few <= 2)
    if found.exact:
        assert total == pytest.approx(everyone, abs=1e-9)
    width = -(-2 * n_few // n_many)
    admitted = np.argsort(np.argsort(costs, axis=1), axis=1) < 2
    admitted |= np.argsort(np.argsort(costs, axis=0), axis=0) < width
    least = best_sum(np.where(admitted, costs, np.inf))
    if np.isfinite(least) and n_few > 2:
        assert total == pytest.approx(least, abs=1e-9)


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


def on_a_line(*places):
    return (Points.of(np.array(place, float)[:, None], np.ones((len(place), 1))) for place in places)


def test_a_point_in_nobodys_list_is_matched():
    # The last right point is among the nearest of nobody, and must be taken.
    left, right = on_a_line([0, 1, 2, 3], [0.1, 1.1, 2.1, 50])
    found = assign(left, right, make_metric("mean_distance", np.full(1, 0.9)), n_candidates=1)
    assert found.pairs.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert not found.exact


@pytest.mark.parametrize("most_pairs", [4_000_000, 10])
@pytest.mark.parametrize("n_right", [40, 55])
def test_everyone_has_a_partner_where_all_want_the_same(monkeypatch, most_pairs, n_right):
    # Of two clouds side by side, few points are the nearest of all.
    left, right = on_a_line(np.linspace(0, 1, 40), np.linspace(10, 11, n_right))
    metric = make_metric("mean_distance", np.full(1, 0.9))
    best = assign(left, right, metric).scores.sum()
    monkeypatch.setattr(assignment, "_MOST_PAIRS", most_pairs)
    found = assign(left, right, metric, n_candidates=2)
    assert found.pairs[:, 0].tolist() == list(range(40))
    assert len(set(found.pairs[:, 1])) == 40
    assert best <= found.scores.sum() < 1.1 * best


def test_as_many_candidates_as_points_on_the_smaller_side_are_exact():
    left, right = random_points(6, 2, 0), random_points(90, 2, 1)
    metric = make_metric("mean_distance", np.full(2, 0.9))
    whole = assign(left, right, metric)
    for n_candidates in (6, 20, 90, 200):
        found = assign(right, left, metric, n_candidates=n_candidates)
        assert found.exact
        assert found.scores.sum() == pytest.approx(whole.scores.sum())
    assert not assign(left, right, metric, n_candidates=5).exact


def test_wrong_numbers_of_candidates_are_refused():
    points, metric = random_points(3, 2, 0), make_metric("cosine", np.full(2, 0.9))
    with pytest.raises(ValueError, match="n_candidates must be positive, got 0"):
        assign(points, points, metric, n_candidates=0)
    for wrong in (2.5, "3", True):
        with unchecked(), pytest.raises(TypeError, match="n_candidates must be an integer or None"):
            assign(points, points, metric, n_candidates=wrong)


def test_scoring_every_pair_reports_progress_and_can_be_stopped(monkeypatch):
    def stopped(work, *, progress):
        assert progress is False
        monitor = Monitor()
        monitor.control[STOP] = 1
        return work(monitor)

    points = random_points(3, 2, 0)
    monkeypatch.setattr(assignment, "watch", stopped)
    with pytest.raises(Cancelled):
        assign(points, points, make_metric("cosine", np.full(2, 0.9)), progress=False)


MEMORY = """
import resource, numpy as np
from corrvae.scoring.assignment import assign
from corrvae.scoring.metrics import MeanDistance
from corrvae.scoring.points import Points

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def sides(n):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n, 8))
    left, right = (centres + 0.1 * rng.normal(size=(n, 8)) for _ in range(2))
    right[:5] += 30  # in nobody's list
    return (Points.of(part, np.ones((n, 8))) for part in (left, right))

assign(*sides(200), MeanDistance(), n_candidates=5)
before = peak()
made = assign(*sides(6000), MeanDistance(), n_candidates=5)
assert len(set(made.pairs[:, 1].tolist())) == 6000
print(peak() - before)
"""


def test_one_point_without_suitors_does_not_admit_all_pairs():
    # All pairs of 6000 points would take 288 MB for costs alone.
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 80e6
