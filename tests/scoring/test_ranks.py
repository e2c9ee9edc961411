import numpy as np
import pytest

from corrvae.scoring.metrics import make_metric
from corrvae.scoring.ranks import rank
from support.correlated_points import correlated_points
from support.literal_scores import NAMES, literal_ranks, literal_scores, random_exclusions


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["perceptron", "bilinear", "metric"])
def test_correlations_enter_where_the_metric_uses_them(name, kind):
    made = correlated_points(40, kind)
    metric = make_metric(name, np.full(3, 0.9))
    exclusions = random_exclusions(40, 40, 0.2, 0)
    rng = np.random.default_rng(1)
    pairs = np.stack([rng.integers(40, size=60), rng.integers(40, size=60)], axis=1)
    correlation = made.correlation if name == "expected_distance" else None
    scores = literal_scores(name, made.points, made.points, np.full(3, 0.9), correlation)
    expected = literal_ranks(scores, pairs, exclusions, metric.larger_is_better, tolerance=1e-6)
    for same in (True, False):
        found = rank(made.points, made.points, metric, pairs, exclusions, same=same)
        np.testing.assert_array_equal(found.ranks, expected)
        np.testing.assert_allclose(found.scores, scores[pairs[:, 0], pairs[:, 1]], rtol=1e-5, atol=1e-5)
