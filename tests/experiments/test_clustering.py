import numpy as np
import pytest
import scipy.linalg

from corrvae.datasets import tree
from corrvae.experiments import clustering
from corrvae.experiments.clustering import cut, score_clustering, similarities
from corrvae.experiments.models import point_posterior
from corrvae.model import Posterior
from corrvae.scoring import make_metric


def squared_distances(points):
    return np.square(points[:, None] - points).sum(axis=2).astype(np.float32)


def literal_second(distances, diagonal):
    """Second eigenvalue and vector of the normalised Laplacian, spelled out in float64."""
    S = np.exp(-distances.astype(np.float64) / 2)
    np.fill_diagonal(S, 1.0 if diagonal == "unit" else 0.0)
    root = np.sqrt(S.sum(axis=1))
    values, vectors = scipy.linalg.eigh(np.eye(len(S)) - S / root[:, None] / root)
    return values[1], vectors[:, 1]


@pytest.mark.parametrize("diagonal", ["zero", "unit"])
@pytest.mark.parametrize("n_points", [2, 7, 120, 620])
def test_the_cut_is_that_of_a_dense_eigenvector(diagonal, n_points):
    points = np.random.default_rng(n_points).normal(size=(n_points, 2)) * [2.0, 0.5]
    distances = squared_distances(points)
    eigenvalue, vector = literal_second(distances, diagonal)
    found = cut(similarities(distances.copy()), diagonal)
    assert found.eigenvalue == pytest.approx(eigenvalue, rel=1e-3)
    side = vector > np.median(vector)
    assert max(np.mean(found.side == side), np.mean(found.side != side)) > 0.99
    assert found.residual < 1e-2


def test_iteration_and_decomposition_agree(monkeypatch):
    similar = similarities(squared_distances(np.random.default_rng(1).normal(size=(200, 2))))
    dense = cut(similar)
    monkeypatch.setattr(clustering, "_DENSE", 10)
    iterated = cut(similar)
    assert iterated.eigenvalue == pytest.approx(dense.eigenvalue, rel=1e-3)
    assert max(np.mean(iterated.side == dense.side), np.mean(iterated.side != dense.side)) > 0.98


def test_large_distances_do_not_underflow():
    points = np.concatenate([np.zeros((10, 1)), np.ones((10, 1))]) + np.arange(20)[:, None] * 0.01
    near = cut(similarities(squared_distances(points)))
    far = cut(similarities(squared_distances(points) + 1000.0))  # exp(-500) is 0 in single precision
    assert np.array_equal(near.side, far.side)


def test_points_without_a_second_eigenvector_have_a_large_residual(monkeypatch):
    monkeypatch.setattr(clustering, "_DENSE", 10)
    points = np.random.default_rng(0).normal(size=(300, 100))  # all far from each other: many near-separate groups
    assert cut(similarities(squared_distances(points)), "unit").residual > 0.1


def test_two_groups_are_found_and_random_labels_are_not():
    generator = np.random.default_rng(0)
    points = np.concatenate([generator.standard_normal((40, 2)), generator.standard_normal((40, 2)) + 6.0])
    posterior, metric = point_posterior(points), make_metric("mean_distance")
    found = score_clustering(posterior, metric, np.repeat([0, 1], 40))
    assert [found[name] for name in ("nmi", "ari", "unit_nmi", "unit_ari")] == pytest.approx([1.0] * 4)
    found = score_clustering(posterior, metric, np.tile([0, 1], 40))
    assert found["nmi"] < 0.1


def test_nmi_by_hand():
    # two and two, found as they are but for one: the cut is at 2.5, the labels at 1.5
    posterior = point_posterior(np.array([[0.0], [0.1], [5.0], [5.1]]))
    found = score_clustering(posterior, make_metric("mean_distance"), np.array([0, 0, 0, 1]))
    information = np.log(4 / 3) / 2 + np.log(2 / 3) / 4 + np.log(2) / 4
    entropies = np.log(2), -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert found["nmi"] == pytest.approx(2 * information / sum(entropies))


def test_expected_distances_count_uncertainty():
    data = tree(60, 3, n_components=5, random_state=0)
    mean = data.latents.astype(np.float32)
    stddev = np.random.default_rng(0).uniform(0.5, 1.0, mean.shape).astype(np.float32)
    variances = np.square(stddev).sum(axis=1)
    distances = squared_distances(mean) + variances[:, None] + variances
    expected = cut(similarities(distances)).residual, cut(similarities(squared_distances(mean))).residual
    found = [
        score_clustering(Posterior(mean, stddev), make_metric(metric), data.labels)["residual"]
        for metric in ("expected_distance", "mean_distance")
    ]
    assert found == pytest.approx(expected, rel=1.0, abs=1e-4)
