import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.monitor import STOP, Cancelled, Monitor
from corrvae.scoring.correlated import nearest
from corrvae.scoring.points import Exclusions, Points
from support.correlated import (
    NETWORKS,
    excluding,
    large_activations,
    left_out,
    literal_distances,
    make_model,
    make_points,
    oneself,
    random_rows,
)

MEMORY = 2**26
# What float64 leaves open, relative to the squares that make up a distance.
CLOSE = 1e-13


def search(queries, candidates, n_neighbors, exclusions, *, same=False, memory=MEMORY):
    return nearest(queries, candidates, n_neighbors, exclusions, same=same, memory=memory, monitor=Monitor())


def check(found, queries, candidates, n_neighbors, exclusions):
    """Same scores as the literal evaluation, at positions that have these scores, without repetition."""
    wanted = literal_distances(queries, candidates)
    slack = CLOSE * (wanted + (queries.stddev**2).sum(1)[:, None] + (candidates.stddev**2).sum(1))
    wanted[left_out(exclusions, len(candidates))] = np.inf
    assert found.scores.shape == found.positions.shape == (len(queries), n_neighbors)
    for query in range(len(queries)):
        allowed = np.isfinite(wanted[query])
        n_found = min(n_neighbors, allowed.sum())
        positions, scores = found.positions[query], found.scores[query]
        assert (positions[n_found:] == -1).all()
        assert np.isnan(scores[n_found:]).all()
        positions, scores = positions[:n_found], scores[:n_found]
        assert len(np.unique(positions)) == n_found
        assert (np.diff(scores) >= 0).all()
        assert allowed[positions].all()
        assert (abs(wanted[query, positions] - scores) <= slack[query, positions]).all()
        np.testing.assert_allclose(scores, np.sort(wanted[query])[:n_found], rtol=0, atol=slack[query].max(initial=0))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("spread", [1.0, 0.05])
@pytest.mark.parametrize("network", NETWORKS)
def test_finds_what_the_literal_evaluation_finds(network, spread, same):
    points = make_points(make_model(network), random_rows(70, repeated=10), spread=spread)
    found = search(points, points, 4, oneself(70), same=same)
    check(found, points, points, 4, oneself(70))
    assert found.n_pairs == (70 * 69 // 2 if same else 70 * 70)
    assert 0 < found.n_evaluated <= found.n_pairs


@settings(max_examples=25)
@given(
    network=st.sampled_from(sorted(NETWORKS)),
    n_queries=st.integers(0, 24),
    n_candidates=st.integers(0, 40),
    n_neighbors=st.integers(1, 6),
    spread=st.sampled_from([0.02, 0.3, 1.0]),
    seed=st.integers(0, 99),
    memory=st.sampled_from([1, 2**26]),
    data=st.data(),
)
def test_agrees_on_any_sizes_and_exclusions(network, n_queries, n_candidates, n_neighbors, spread, seed, memory, data):
    model = make_model(network, seed)
    queries = make_points(model, random_rows(n_queries + 1, seed)[:n_queries], spread=spread)
    candidates = make_points(model, random_rows(n_candidates + 1, seed + 1, n_candidates // 3)[:n_candidates])
    pairs = st.tuples(st.integers(0, max(0, n_queries - 1)), st.integers(0, max(0, n_candidates - 1)))
    chosen = data.draw(st.lists(pairs, max_size=60)) if n_queries and n_candidates else []
    exclusions = excluding(n_queries, *chosen)
    found = search(queries, candidates, n_neighbors, exclusions, memory=memory)
    check(found, queries, candidates, n_neighbors, exclusions)


@settings(max_examples=15)
@given(
    network=st.sampled_from(["perceptron", "bilinear", "metric", "own"]),
    n_points=st.integers(1, 130),
    spread=st.sampled_from([0.02, 0.3, 1.0]),
    seed=st.integers(0, 99),
    memory=st.sampled_from([1, 2**26]),
)
def test_symmetry_changes_nothing(network, n_points, spread, seed, memory):
    points = make_points(make_model(network, seed), random_rows(n_points, seed, n_points // 3), spread=spread)
    generator = np.random.default_rng(seed)
    others = Exclusions.of(n_points, *generator.integers(0, n_points, (2, n_points)))
    exclusions = Exclusions.union(n_points, [oneself(n_points), others])
    once = search(points, points, 5, exclusions, same=True, memory=memory)
    twice = search(points, points, 5, exclusions, same=False)
    np.testing.assert_array_equal(once.scores, twice.scores)
    np.testing.assert_array_equal(once.positions, twice.positions)


@pytest.mark.parametrize("offset", [20.0, 2000.0, 2e5])
def test_large_activations_that_cancel_do_not_disturb_neighbours(offset):
    points = large_activations(150, offset)
    found = search(points, points, 5, oneself(150), same=True)
    wanted = literal_distances(points, points)
    np.fill_diagonal(wanted, np.inf)
    np.testing.assert_array_equal(found.positions, np.argsort(wanted, axis=1)[:, :5])


def test_memory_stays_within_the_budget():
    # bounds decide much, so that candidates are tried ahead; all bounds of 512 queries at once would take 40 MB
    points = make_points(make_model("perceptron"), random_rows(5000), spread=0.01)
    queries, nobody = points.take(np.arange(600)), excluding(600)
    search(queries, points.take(np.arange(800)), 3, nobody)  # compiles, and keeps the queries' vectors
    search(queries, points, 3, nobody)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        tracemalloc.start()
        search(queries, points, 3, nobody, memory=2**22)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        torch.set_num_threads(before)
    assert peak < 2**22 + 6 * 2**20  # the pool's first pairs, and copies of the points


def test_equal_candidates_come_in_their_order():
    X = random_rows(90)
    X[[7, 20, 33, 89]] = X[50]
    points = make_points(make_model("perceptron"), X)
    exact = Points.of(points.mean, points.stddev, points.vectors)
    exact.mean[[7, 20, 33, 89]], exact.stddev[[7, 20, 33, 89]] = exact.mean[50], exact.stddev[50]
    found = search(exact, exact, 89, oneself(90), same=True)
    for row in found.positions:
        equal = [position for position in row if position in (7, 20, 33, 50, 89)]
        places = np.flatnonzero(np.isin(row, equal))
        assert equal == sorted(equal)
        assert (np.diff(places) == 1).all()


def test_all_points_equal():
    points = make_points(make_model("bilinear"), np.ones((80, 6)))
    points.mean[:], points.stddev[:] = points.mean[0], points.stddev[0]
    found = search(points, points, 3, oneself(80), same=True)
    assert found.positions[0].tolist() == [1, 2, 3]
    assert found.positions[1].tolist() == [0, 2, 3]
    assert (found.positions[3:] == [0, 1, 2]).all()


def test_one_candidate_only_and_none():
    model = make_model("perceptron")
    queries, one = make_points(model, random_rows(3)), make_points(model, random_rows(1, seed=5))
    found = search(queries, one, 2, excluding(3, (1, 0)))
    assert found.positions.tolist() == [[0, -1], [-1, -1], [0, -1]]
    assert np.isnan(found.scores[1]).all()


def test_a_point_is_its_own_candidate_unless_excluded():
    points = make_points(make_model("own"), random_rows(70), spread=0.01)
    found = search(points, points, 1, excluding(70), same=True)
    check(found, points, points, 1, excluding(70))
    assert (found.positions[:, 0] == np.arange(70)).all()


def test_bounds_spare_most_pairs_when_posteriors_are_narrow():
    points = make_points(make_model("perceptron"), random_rows(400), spread=0.01)
    found = search(points, points, 2, oneself(400), same=True)
    assert found.n_evaluated < 0.2 * found.n_pairs


def test_vectors_that_do_not_fit_are_made_when_needed():
    model, X = make_model("perceptron"), random_rows(80, repeated=9)
    kept, remade = make_points(model, X), make_points(model, X, memory=0)
    wanted, found = (search(points, points, 3, oneself(80), same=True) for points in (kept, remade))
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-5)


def test_stops_when_asked():
    points = make_points(make_model("perceptron"), random_rows(80))
    monitor = Monitor()
    monitor.control[STOP] = 1
    with pytest.raises(Cancelled):
        nearest(points, points, 3, oneself(80), same=True, memory=MEMORY, monitor=monitor)


def test_refuses_points_without_vectors_and_no_neighbours():
    bare = Points.of(np.zeros((3, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="no vectors"):
        search(bare, bare, 1, oneself(3), same=True)
    with pytest.raises(ValueError, match="at least 1"):
        search(bare, bare, 0, oneself(3))


def test_says_which_distance_is_not_a_number():
    points = make_points(make_model("bilinear"), random_rows(5))
    points.mean[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"position \d and the candidate at position \d is not a number"):
        search(points, points, 2, oneself(5), same=True)
