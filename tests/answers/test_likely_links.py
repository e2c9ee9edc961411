import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.answers import likely_links as module
from corrvae.answers.likely_links import best_pairs
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.points import Exclusions
from support.correlated import literal_distances, make_model, make_points, random_rows
from support.literal_scores import NAMES, literal_scores, random_points


def symmetric(n_points, share, seed):
    """Oneself, and a share of the pairs in both directions."""
    rng = np.random.default_rng(seed)
    joined = np.triu(rng.random((n_points, n_points)) < share, 1)
    return Exclusions.of(n_points, *np.nonzero(joined | joined.T | np.eye(n_points, dtype=bool)))


def by_looking_at_all(scores, exclusions, n_pairs, larger_is_better):
    """Pairs i < j in the order of their scores, equal ones in the order of positions."""
    allowed = np.ones(scores.shape, bool)
    allowed[exclusions.queries, exclusions.candidates] = False
    i, j = np.nonzero(np.triu(allowed, 1))
    order = np.argsort(-scores[i, j] if larger_is_better else scores[i, j], kind="stable")[:n_pairs]
    return np.stack([i[order], j[order]], axis=1)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(
    n_points=st.integers(1, 40),
    n_pairs=st.integers(1, 300),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 0.3, 0.95, 1.0]),
    repeats=st.sampled_from([0.0, 0.6]),
)
def test_they_are_those_of_all_pairs(name, n_points, n_pairs, seed, share, repeats):
    points, tau = random_points(n_points, 3, seed, repeats=repeats), np.array([0.9, -0.5, 0.0])
    metric, exclusions = make_metric(name, tau), symmetric(n_points, share, seed)
    found = best_pairs(points, metric, n_pairs, exclusions)
    scores = literal_scores(name, points, points, tau)
    expected = by_looking_at_all(scores, exclusions, n_pairs, metric.larger_is_better)
    assert len(found.pairs) == len(expected)
    np.testing.assert_allclose(found.scores, scores[tuple(expected.T)], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.scores, scores[tuple(found.pairs.T)], rtol=1e-9, atol=1e-9)
    assert (found.pairs[:, 0] < found.pairs[:, 1]).all()
    assert len(np.unique(found.pairs, axis=0)) == len(found.pairs)
    allowed = set(map(tuple, by_looking_at_all(scores, exclusions, 10**6, metric.larger_is_better).tolist()))
    assert set(map(tuple, found.pairs.tolist())) <= allowed


@pytest.mark.parametrize("network", ["perceptron", "bilinear", "own"])
@pytest.mark.parametrize("n_pairs", [1, 25, 400, 10_000])
def test_correlations_are_taken_in(network, n_pairs):
    points = make_points(make_model(network), random_rows(45, repeated=12))
    metric, exclusions = make_metric("expected_distance", np.zeros(3)), symmetric(45, 0.1, 0)
    found = best_pairs(points, metric, n_pairs, exclusions)
    scores = literal_distances(points, points)
    expected = by_looking_at_all(scores, exclusions, n_pairs, larger_is_better=False)
    np.testing.assert_allclose(found.scores, scores[tuple(expected.T)], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.scores, scores[tuple(found.pairs.T)], rtol=1e-6, atol=1e-7)


def test_equal_points_in_crowds_do_not_make_it_ask_for_all_pairs(monkeypatch):
    """All pairs score the same: only as many may be held as were asked for, times a constant."""
    points = random_points(400, 2, 0)
    points.mean[:], points.stddev[:] = 1.0, 0.5
    asked = []
    search = module.nearest

    def counting(queries, candidates, metric, n_neighbors, *rest, **options):
        asked.append(len(queries) * n_neighbors)
        return search(queries, candidates, metric, n_neighbors, *rest, **options)

    monkeypatch.setattr(module, "nearest", counting)
    found = best_pairs(points, make_metric("expected_distance", np.zeros(2)), 600, symmetric(400, 0.0, 0))
    expected = [(i, j) for i in range(2) for j in range(i + 1, 400)][:600]
    assert found.pairs.tolist() == [list(pair) for pair in expected]
    assert asked[0] == 400 * 8
    assert max(asked) <= 400 * 8
    assert sum(asked) < 400 * 399 / 4


def test_one_hub_is_asked_again_and_the_others_are_not(monkeypatch):
    """A star: all good pairs share the centre, whose first list is too short for them."""
    rng = np.random.default_rng(0)
    points = random_points(200, 40, 0)
    points.mean[:], points.stddev[:] = rng.normal(size=(200, 40)), 0.1
    points.mean[0] = 0.0
    sizes = []
    search = module.nearest
    monkeypatch.setattr(
        module, "nearest", lambda queries, *rest, **o: sizes.append(len(queries)) or search(queries, *rest, **o)
    )
    found = best_pairs(points, make_metric("mean_distance", np.zeros(40)), 150, symmetric(200, 0.0, 0))
    scores = literal_scores("mean_distance", points, points)
    assert found.pairs.tolist() == by_looking_at_all(scores, symmetric(200, 0.0, 0), 150, False).tolist()
    assert (found.pairs[:, 0] == 0).sum() > 64
    assert sizes[0] == 200
    assert len(sizes) > 2
    assert max(sizes[1:]) < 10


def test_a_number_below_one_is_refused():
    with pytest.raises(ValueError, match="must be positive, got 0"):
        best_pairs(random_points(3, 2, 0), make_metric("cosine", np.zeros(2)), 0, symmetric(3, 0.0, 0))
