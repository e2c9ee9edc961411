import numpy as np
import pytest

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments.distances import expected_distances

N = 70


def fitted(posterior: str, pair_network: str = "perceptron") -> CorrelatedVAE:
    X = np.random.default_rng(0).poisson(0.7, (N, 6)).astype(np.float32)
    X[5], X[41] = X[3], X[3]  # equal points are evaluated once, and must not be lost
    graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(N - 1)])
    settings = {"hidden": (7,), "pair_hidden": (6,), "max_steps": 20, "edge_batch": 16, "pair_network": pair_network}
    return CorrelatedVAE(3, posterior=posterior, **settings, random_state=0).fit(X, graph=graph)


@pytest.mark.parametrize(
    ("posterior", "network"), [("independent", "perceptron"), ("pairwise", "perceptron"), ("pairwise", "bilinear")]
)
def test_distances_are_those_of_score_pairs(posterior, network):
    model = fitted(posterior, network)
    rows = np.array([41, 0, 69])
    found = expected_distances(model)(rows)
    pairs = np.stack(np.meshgrid(rows, np.arange(N), indexing="ij"), axis=-1).reshape(-1, 2)
    apart = pairs[:, 0] != pairs[:, 1]
    expected = np.zeros(len(pairs))
    expected[apart] = model.score_pairs(pairs[apart]).scores
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-4, atol=1e-4)


def test_both_ways_are_the_same_number():
    found = expected_distances(fitted("pairwise"))(np.arange(N))
    assert np.array_equal(found, found.T)
    assert found[3, 5] == found[5, 41] > 0


def test_a_model_without_its_features_is_refused():
    model = fitted("pairwise")
    model.features_ = None
    with pytest.raises(ValueError, match="need the features of training"):
        expected_distances(model)
