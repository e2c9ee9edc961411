import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.monitor import STOP, Cancelled, Monitor
from corrvae.scoring import factorised
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.points import Exclusions, Points
from support.literal_scores import (
    NAMES,
    literal_neighbors,
    literal_ranks,
    literal_scores,
    random_exclusions,
    random_points,
    searches,
)


def exact_scores(metric, queries, candidates):
    """All scores by the pairwise form, whose agreement with the formulas is tested with the metrics."""
    pairs = np.stack(np.divmod(np.arange(len(queries) * len(candidates)), len(candidates)), axis=1)
    return metric.parts(queries, candidates, pairs).score.reshape(len(queries), len(candidates))


def nearest(queries, candidates, metric, n_neighbors, exclusions, memory=2**24):
    return factorised.nearest(queries, candidates, metric, n_neighbors, exclusions, memory=memory, monitor=Monitor())


def rank(queries, candidates, metric, pairs, exclusions, memory=2**24):
    return factorised.rank(queries, candidates, metric, pairs, exclusions, memory=memory, monitor=Monitor())


@given(searches(), st.sampled_from(NAMES))
def test_neighbours_are_those_of_the_whole_matrix(search, name):
    queries, candidates, exclusions, tau, n_neighbors = search
    metric = make_metric(name, tau)
    found = nearest(queries, candidates, metric, n_neighbors, exclusions)
    scores = exact_scores(metric, queries, candidates)
    expected = literal_neighbors(scores, exclusions, n_neighbors, metric.larger_is_better)
    np.testing.assert_array_equal(found.positions, expected)
    there = expected >= 0
    np.testing.assert_array_equal(found.scores[there], scores[np.nonzero(there)[0], expected[there]])
    assert np.isnan(found.scores[~there]).all()
    assert (found.n_evaluated, found.n_pairs) == (0, scores.size - len(exclusions.candidates))


@given(searches(), st.sampled_from(NAMES), st.integers(0, 10**6))
def test_ranks_are_those_of_the_whole_matrix(search, name, seed):
    queries, candidates, exclusions, tau, n_pairs = search
    metric = make_metric(name, tau)
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(len(queries), size=n_pairs), rng.integers(len(candidates), size=n_pairs)], axis=1)
    found = rank(queries, candidates, metric, pairs, exclusions)
    scores = exact_scores(metric, queries, candidates)
    np.testing.assert_array_equal(found.ranks, literal_ranks(scores, pairs, exclusions, metric.larger_is_better))
    np.testing.assert_array_equal(found.scores, scores[pairs[:, 0], pairs[:, 1]])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rows", "columns"), [(512, 4096), (7, 40), (1, 150), (60, 3)])
def test_blocks_of_every_size_give_the_same(monkeypatch, name, rows, columns):
    points = random_points(160, 5, 3, repeats=0.3)
    exclusions, tau = random_exclusions(160, 160, 0.05, 1), np.full(5, 0.99)
    metric = make_metric(name, tau)
    rng = np.random.default_rng(0)
    pairs = rng.permutation(np.stack(np.nonzero(rng.random((160, 160)) < 0.02), axis=1))
    scores = exact_scores(metric, points, points)
    np.testing.assert_allclose(scores, literal_scores(name, points, points, tau), rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(factorised, "_COLUMNS", columns)
    memory = 4 * rows * columns
    found = nearest(points, points, metric, 9, exclusions, memory)
    expected = literal_neighbors(scores, exclusions, 9, metric.larger_is_better)
    np.testing.assert_array_equal(found.positions, expected)
    ranks = rank(points, points, metric, pairs, exclusions, memory).ranks
    np.testing.assert_array_equal(ranks, literal_ranks(scores, pairs, exclusions, metric.larger_is_better))


@pytest.mark.parametrize("name", NAMES)
def test_equal_points_are_ties_and_the_first_comes_first(name):
    points = Points.of(np.ones((40, 3)), np.full((40, 3), 0.5))
    metric = make_metric(name, np.full(3, 0.9))
    myself = Exclusions.of(40, np.arange(40), np.arange(40))
    found = nearest(points, points, metric, 3, myself)
    assert found.positions[0].tolist() == [1, 2, 3]
    assert found.positions[5].tolist() == [0, 1, 2]
    assert rank(points, points, metric, np.array([[0, 1], [7, 3]]), myself).ranks.tolist() == [39, 39]


def test_near_ties_are_decided_in_float64():
    # Far from the origin, float32 inner products cannot tell these candidates apart.
    offsets = np.random.default_rng(0).permutation(200)
    mean = np.full((201, 2), 1000.0)
    mean[1:, 0] += 2.0**-10 * (1 + offsets)
    points, one = Points.of(mean, np.ones((201, 2))), np.array([0])
    asked, others = points.take(one), points.take(np.arange(1, 201))
    nobody = Exclusions.of(1, np.empty(0, np.int64), np.empty(0, np.int64))
    metric = make_metric("expected_distance", np.full(2, 0.5))
    np.testing.assert_array_equal(nearest(asked, others, metric, 200, nobody).positions[0], np.argsort(offsets))
    pairs = np.stack([np.zeros(200, np.int64), np.arange(200)], axis=1)
    np.testing.assert_array_equal(rank(asked, others, metric, pairs, nobody).ranks, 1 + offsets)


def test_numbers_too_large_for_float32_squared():
    mean = np.array([[0.0], [3e19], [-2e19], [1e20]])
    points = Points.of(mean, np.ones((4, 1)))
    myself = Exclusions.of(4, np.arange(4), np.arange(4))
    with np.errstate(all="ignore"):
        found = nearest(points, points, make_metric("mean_distance", np.full(1, 0.5)), 3, myself)
    assert found.positions.tolist() == [[2, 1, 3], [0, 2, 3], [0, 1, 3], [1, 0, 2]]


def test_no_pairs_and_no_queries():
    points = random_points(5, 2, 0)
    nobody = Exclusions.of(5, np.empty(0, np.int64), np.empty(0, np.int64))
    metric = make_metric("cosine", np.full(2, 0.5))
    assert rank(points, points, metric, np.empty((0, 2), np.int64), nobody).ranks.shape == (0,)
    none = points.take(np.empty(0, np.int64))
    assert nearest(none, points, metric, 2, nobody.take(np.empty(0, np.int64))).positions.shape == (0, 2)


def test_a_stop_is_heard():
    points = random_points(5, 2, 0)
    monitor = Monitor()
    nobody = Exclusions.of(5, np.empty(0, np.int64), np.empty(0, np.int64))
    metric = make_metric("cosine", np.full(2, 0.5))
    monitor.control[STOP] = 1
    with pytest.raises(Cancelled):
        factorised.nearest(points, points, metric, 2, nobody, memory=2**20, monitor=monitor)


MEMORY = """
import resource, numpy as np
from corrvae.monitor import Monitor
from corrvae.scoring import factorised
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.points import Exclusions, Points

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

n = {n}
points = Points.of(np.random.default_rng(0).normal(size=(n, 4)), np.ones((n, 4)))
few = points.take(np.arange(20))
nothing = Exclusions.of(20, np.empty(0, np.int64), np.empty(0, np.int64))
metric = make_metric("expected_distance", np.full(4, 0.9))
keep = dict(memory=2**22, monitor=Monitor())
factorised.nearest(few, points, metric, 3, nothing, **keep)
factorised.rank(few, points, metric, np.array([[0, 1]]), nothing, **keep)
before = peak()
myself = Exclusions.of(n, np.arange(n), np.arange(n))
factorised.nearest(points, points, metric, 3, myself, **keep)
factorised.rank(points, points, metric, np.stack([np.arange(n), np.roll(np.arange(n), 1)], axis=1), myself, **keep)
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_square_of_the_points():
    n = 12_000  # n by n in float32 would be 576 MB, in bytes 144 MB
    run = subprocess.run([sys.executable, "-c", MEMORY.format(n=n)], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 50e6
