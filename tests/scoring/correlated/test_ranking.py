import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.monitor import STOP, Cancelled, Monitor
from corrvae.scoring.correlated import rank
from corrvae.scoring.points import Exclusions, Points
from support.correlated import (
    DIM,
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
FLOAT64 = 1e-13


def search(queries, candidates, pairs, exclusions, *, same=False, memory=MEMORY):
    return rank(queries, candidates, np.asarray(pairs), exclusions, same=same, memory=memory, monitor=Monitor())


def check(found, queries, candidates, pairs, exclusions):
    """Ranks are those of the literal evaluation in float64, up to what float64 itself leaves open."""
    wanted = literal_distances(queries, candidates)
    targets = wanted[tuple(pairs.T)]
    sizes = (queries.stddev**2).sum(1)[pairs[:, 0]] + (candidates.stddev**2).sum(1)[pairs[:, 1]]
    room = FLOAT64 * (targets + sizes)
    np.testing.assert_allclose(found.scores, targets, rtol=0, atol=room.max(initial=0))
    others = ~left_out(exclusions, len(candidates))[pairs[:, 0]]
    others[np.arange(len(pairs)), pairs[:, 1]] = False
    distances = wanted[pairs[:, 0]]
    least = 1 + (others & (distances < (targets - room)[:, None])).sum(1)
    most = 1 + (others & (distances < (targets + room)[:, None])).sum(1)
    assert (least <= found.ranks).all()
    assert (found.ranks <= most).all()
    return (least == most).mean() if len(pairs) else 1.0


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("spread", [1.0, 0.05])
@pytest.mark.parametrize("network", NETWORKS)
def test_ranks_as_the_literal_evaluation_does(network, spread, same):
    points = make_points(make_model(network), random_rows(70), spread=spread)
    generator = np.random.default_rng(0)
    pairs = generator.integers(0, 70, (90, 2))
    exclusions = Exclusions.union(70, [oneself(70), Exclusions.of(70, *generator.integers(0, 70, (2, 200)))])
    found = search(points, points, pairs, exclusions, same=same)
    assert check(found, points, points, pairs, exclusions) == 1.0
    assert 0 < found.n_evaluated <= found.n_pairs


@pytest.mark.parametrize("offset", [20.0, 2000.0, 2e5])
@pytest.mark.parametrize("same", [True, False])
def test_large_activations_that_cancel_do_not_disturb_ranks(offset, same):
    points = large_activations(150, offset)
    wanted = literal_distances(points, points)
    np.fill_diagonal(wanted, np.inf)
    order = np.argsort(wanted, axis=1)
    pairs = np.concatenate([np.stack([np.arange(150), order[:, place]], axis=1) for place in (0, 1, 70)])
    found = search(points, points, pairs, oneself(150), same=same)
    np.testing.assert_array_equal(found.ranks, np.repeat([1, 2, 71], 150))


def test_close_candidates_are_told_apart():
    # distances of about 200, of which hundreds differ by less than a float32 can hold
    generator = np.random.default_rng(0)
    mean = generator.normal(size=(400, DIM))
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    vectors = make_points(make_model("bilinear"), random_rows(1)[np.zeros(400, int)]).vectors
    points = Points.of(14 * mean, np.full((400, DIM), 0.5), vectors)
    points.mean[0] = 0
    pairs = np.stack([np.zeros(399, int), np.arange(1, 400)], axis=1)
    found = search(points, points, pairs, oneself(400), same=True)
    wanted = literal_distances(points, points)[0, 1:]
    assert np.diff(np.sort(wanted)).min() < 1e-7
    np.testing.assert_array_equal(found.ranks, (wanted <= found.scores[:, None] + 1e-12).sum(1))


def test_several_targets_of_a_query_some_twice_and_some_excluded():
    points = make_points(make_model("perceptron"), random_rows(90, repeated=30))
    targets = np.array([4, 70, 8, 8, 80, 4, 89, 12])
    pairs = np.stack([np.array([3, 3, 3, 3, 3, 3, 3, 5]), targets], axis=1)
    exclusions = excluding(90, (3, 70), (3, 3), (5, 5))
    found = search(points, points, pairs, exclusions, same=False)
    distances, allowed = literal_distances(points, points), ~left_out(exclusions, 90)
    for (query, target), rank_of_pair in zip(pairs, found.ranks, strict=True):
        others = allowed[query] & (np.arange(90) != target)
        assert rank_of_pair == 1 + (others & (distances[query] <= distances[query, target] + 1e-12)).sum()


@settings(max_examples=25)
@given(
    network=st.sampled_from(sorted(NETWORKS)),
    n_queries=st.integers(1, 24),
    n_candidates=st.integers(1, 40),
    n_pairs=st.integers(0, 40),
    spread=st.sampled_from([0.02, 0.3, 1.0]),
    seed=st.integers(0, 99),
    memory=st.sampled_from([1, 2**26]),
)
def test_agrees_on_any_sizes(network, n_queries, n_candidates, n_pairs, spread, seed, memory):
    model, generator = make_model(network, seed), np.random.default_rng(seed)
    queries = make_points(model, random_rows(n_queries, seed), spread=spread)
    candidates = make_points(model, random_rows(n_candidates, seed + 1, n_candidates // 3))
    pairs = np.stack([generator.integers(0, n_queries, n_pairs), generator.integers(0, n_candidates, n_pairs)], axis=1)
    excluded = generator.integers(0, n_queries, 30), generator.integers(0, n_candidates, 30)
    exclusions = Exclusions.of(n_queries, *excluded)
    found = search(queries, candidates, pairs, exclusions, memory=memory)
    check(found, queries, candidates, pairs, exclusions)


@settings(max_examples=15)
@given(n_asking=st.integers(1, 120), seed=st.integers(0, 99), memory=st.sampled_from([1, 2**26]))
def test_symmetry_changes_nothing(n_asking, seed, memory):
    generator = np.random.default_rng(seed)
    points = make_points(make_model("perceptron", seed), random_rows(120, seed, 20), spread=0.3)
    pairs = np.stack([generator.permutation(120)[:n_asking], generator.integers(0, 120, n_asking)], axis=1)
    once = search(points, points, pairs, oneself(120), same=True, memory=memory)
    twice = search(points, points, pairs, oneself(120), same=False)
    np.testing.assert_array_equal(once.ranks, twice.ranks)
    np.testing.assert_array_equal(once.scores, twice.scores)


@pytest.mark.parametrize("network", NETWORKS)
def test_equal_candidates_are_ties_and_count(network):
    X = random_rows(100)
    X[[3, 40, 41, 99]] = X[60]
    points = make_points(make_model(network), X)
    pairs = np.array([[0, 3], [0, 40], [0, 41], [0, 60], [0, 99]])
    ranks = search(points, points, np.concatenate([pairs, pairs + np.array([1, 0])]), oneself(100), same=False).ranks
    assert len(np.unique(ranks[:5])) == len(np.unique(ranks[5:])) == 1
    assert (ranks >= 5).all()


def test_all_points_equal_rank_last():
    points = make_points(make_model("perceptron"), np.ones((80, 6)))
    found = search(points, points, [[0, 5], [7, 1]], oneself(80), same=True)
    assert found.ranks.tolist() == [79, 79]


def test_an_excluded_target_is_ranked_among_the_others():
    points = make_points(make_model("own"), random_rows(30))
    pairs = np.array([[2, 9], [2, 9], [4, 4]])
    exclusions = excluding(30, (2, 9), (4, 4), (4, 7))
    found = search(points, points, pairs, exclusions)
    assert check(found, points, points, pairs, exclusions) == 1.0


def test_one_candidate_and_no_pairs():
    model = make_model("bilinear")
    queries, one = make_points(model, random_rows(3)), make_points(model, random_rows(1, seed=5))
    assert search(queries, one, [[0, 0], [2, 0]], excluding(3, (2, 0))).ranks.tolist() == [1, 1]
    nothing = search(queries, one, np.empty((0, 2), np.int64), excluding(3))
    assert nothing.ranks.shape == nothing.scores.shape == (0,)
    assert nothing.n_evaluated == nothing.n_pairs == 0


def test_bounds_decide_most_when_posteriors_are_narrow():
    points = make_points(make_model("perceptron"), random_rows(300), spread=0.01)
    pairs = np.stack([np.arange(300), (np.arange(300) + 1) % 300], axis=1)
    found = search(points, points, pairs, oneself(300), same=True)
    assert found.n_evaluated < 0.1 * found.n_pairs


def test_stops_when_asked():
    points = make_points(make_model("perceptron"), random_rows(80))
    monitor = Monitor()
    monitor.control[STOP] = 1
    with pytest.raises(Cancelled):
        rank(points, points, np.array([[0, 1]]), oneself(80), same=True, memory=MEMORY, monitor=monitor)


def test_refuses_points_without_vectors_and_numbers_that_are_not():
    bare = Points.of(np.zeros((3, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="no vectors"):
        search(bare, bare, [[0, 1]], oneself(3), same=True)
    points = make_points(make_model("bilinear"), random_rows(5))
    points.mean[3, 0] = np.nan
    with pytest.raises(ValueError, match="query at position 0 and the candidate at position 3 is not"):
        search(points, points, [[0, 3]], oneself(5), same=True)
