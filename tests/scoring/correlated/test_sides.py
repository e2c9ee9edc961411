import numpy as np
import pytest

from corrvae.inference import PairEvaluator
from corrvae.monitor import Monitor
from corrvae.nn import FeatureTable
from corrvae.scoring.correlated import pre_activation
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.sides import SideReader, exact_distances, vectors_of
from corrvae.scoring.points import Points
from support.correlated import NETWORKS, literal_distances, make_model, make_points, random_rows


@pytest.mark.parametrize("network", NETWORKS)
def test_pre_activations_are_those_of_the_posterior(network):
    model, X = make_model(network), random_rows(20)
    left, right = make_points(model, X[:8]), make_points(model, X[8:])
    pairs = np.stack([np.arange(30) % 8, np.arange(30) % 12], axis=1)
    wanted = PairEvaluator(model, FeatureTable(X))(pairs + np.array([0, 8]))
    np.testing.assert_allclose(pre_activation(left, right, pairs), wanted, rtol=1e-5, atol=1e-5)


def test_pre_activations_go_by_pieces(monkeypatch):
    points = make_points(make_model("perceptron"), random_rows(9))
    pairs = np.random.default_rng(0).integers(0, 9, (25, 2))
    whole = pre_activation(points, points, pairs)
    distances = exact_distances(points, points, pairs, Monitor())
    np.testing.assert_allclose(distances, literal_distances(points, points)[tuple(pairs.T)], rtol=1e-13)
    monkeypatch.setattr("corrvae.scoring.correlated.sides._PAIRS", 4)
    np.testing.assert_array_equal(pre_activation(points, points, pairs), whole)
    np.testing.assert_array_equal(exact_distances(points, points, pairs, Monitor()), distances)
    assert pre_activation(points, points, pairs[:0]).shape == (0, 3)


def test_a_side_holds_its_groups():
    points = make_points(make_model("perceptron"), random_rows(10))
    groups = Distinct(np.array([0, 2, 5]), np.array([0, 2, 3, 6]), np.array([0, 7, 2, 5, 8, 9]))
    side = SideReader(points, groups).read(np.array([2, 0]))
    assert side.offsets.tolist() == [0, 3, 5]
    assert side.members.tolist() == [5, 8, 9, 0, 7]
    np.testing.assert_array_equal(side.mean, points.mean[[5, 0]])
    np.testing.assert_array_equal(side.stddev, points.stddev[[5, 0]])
    np.testing.assert_array_equal(side.vectors, vectors_of(points).at(np.array([5, 0])).numpy())
    assert len(side) == 2


def test_points_without_vectors_are_refused():
    with pytest.raises(ValueError, match="posteriors are independent"):
        vectors_of(Points.of(np.zeros((1, 2)), np.ones((1, 2))))
