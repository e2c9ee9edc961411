import numpy as np
import pytest

from corrvae.scoring.metrics import make_metric
from corrvae.scoring.neighbors import is_correlated, nearest
from corrvae.scoring.points import Exclusions
from support.correlated_points import correlated_points
from support.literal_scores import NAMES, literal_neighbors, literal_scores, random_exclusions, random_points


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["perceptron", "bilinear", "metric"])
def test_correlations_enter_where_the_metric_uses_them(name, kind):
    made = correlated_points(40, kind)
    metric = make_metric(name, np.full(3, 0.9))
    exclusions = random_exclusions(40, 40, 0.2, 0)
    assert is_correlated(made.points, made.points, metric) == (name == "expected_distance")
    correlation = made.correlation if name == "expected_distance" else None
    scores = literal_scores(name, made.points, made.points, np.full(3, 0.9), correlation)
    expected = literal_neighbors(scores, exclusions, 4, metric.larger_is_better)
    for same in (True, False):
        found = nearest(made.points, made.points, metric, 4, exclusions, same=same)
        np.testing.assert_array_equal(found.positions, expected)
        np.testing.assert_allclose(found.scores, np.take_along_axis(scores, expected, 1), rtol=1e-5, atol=1e-5)


def test_points_without_vectors_are_independent():
    made, plain = correlated_points(20, "bilinear"), random_points(20, 3, 0)
    metric = make_metric("expected_distance", np.full(3, 0.9))
    assert not is_correlated(made.points, plain, metric)
    nobody = Exclusions.of(20, np.empty(0, np.int64), np.empty(0, np.int64))
    found = nearest(made.points, plain, metric, 3, nobody)
    scores = literal_scores("expected_distance", made.points, plain)
    np.testing.assert_array_equal(found.positions, literal_neighbors(scores, nobody, 3, False))


def test_a_neighbour_at_least():
    points = random_points(3, 2, 0)
    with pytest.raises(ValueError, match="n_neighbors must be positive, got 0"):
        nearest(points, points, make_metric("cosine", np.ones(2) / 2), 0, random_exclusions(3, 3, 0.0, 0))
