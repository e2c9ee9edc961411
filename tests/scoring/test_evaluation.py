import numpy as np
import pytest

from corrvae.scoring import evaluation
from corrvae.scoring.evaluation import complete_parts, evaluate_pairs, join_parts
from corrvae.scoring.metrics import make_metric
from support.correlated_points import correlated_points
from support.literal_scores import NAMES, literal_scores

TAU = np.full(3, 0.9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["perceptron", "bilinear", "metric"])
def test_pairs_are_scored_with_their_correlation(monkeypatch, name, kind):
    monkeypatch.setattr(evaluation, "_PAIRS", 7)
    made = correlated_points(12, kind)
    metric = make_metric(name, TAU)
    pairs = np.stack(np.divmod(np.arange(144), 12), axis=1)
    parts = evaluate_pairs(made.points, made.points, metric, pairs)
    correlation = made.correlation if name == "expected_distance" else None
    expected = literal_scores(name, made.points, made.points, TAU, correlation)
    np.testing.assert_allclose(parts.score.reshape(12, 12), expected, rtol=1e-5, atol=1e-5)
    again = complete_parts(made.points, made.points, metric, pairs, parts.score)
    np.testing.assert_allclose(again.correlation, parts.correlation, atol=1e-9)
    np.testing.assert_array_equal(again.mean, parts.mean)


def test_no_pairs_have_no_parts():
    made = correlated_points(3, "bilinear")
    metric = make_metric("expected_distance", TAU)
    assert evaluate_pairs(made.points, made.points, metric, np.empty((0, 2), np.int64)).score.shape == (0,)
    assert join_parts([]).score.shape == (0,)
