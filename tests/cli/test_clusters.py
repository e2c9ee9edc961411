import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from corrvae.cli import clusters
from corrvae.cli.clusters import find_clusters
from corrvae.model import Posterior


def blobs(n_groups, size, seed=0, apart=10.0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_groups), size)
    mean = rng.normal(size=(len(truth), 4)) + apart * np.eye(4)[truth]
    return Posterior(mean.astype(np.float32), np.full(mean.shape, 0.1, np.float32)), truth


@pytest.mark.parametrize("method", ["spectral", "kmeans", "auto"])
def test_groups_that_stand_apart_are_found(method):
    points, truth = blobs(3, 30)
    labels, route = find_clusters(points, 3, method=method)
    assert adjusted_rand_score(truth, labels) == 1.0
    assert route.startswith("k-means" if method == "kmeans" else "spectral")


def test_groups_that_are_not_round_need_neighbours():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    radius = np.repeat([1.0, 6.0], 150)
    mean = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    points = Posterior(mean.astype(np.float32), np.full(mean.shape, 0.05, np.float32))
    truth = radius > 3
    assert adjusted_rand_score(truth, find_clusters(points, 2)[0]) == 1.0
    assert adjusted_rand_score(truth, find_clusters(points, 2, method="kmeans")[0]) < 0.5


@given(st.integers(2, 12), st.integers(0, 99))
def test_groups_are_numbered_by_size(n_clusters, seed):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(20, 2)).astype(np.float32)
    labels = find_clusters(Posterior(mean, np.full(mean.shape, 0.1, np.float32)), n_clusters, method="kmeans")[0]
    assert (np.diff(np.bincount(labels)) <= 0).all()
    assert len(np.unique(labels)) == labels.max() + 1


def test_equal_points_and_few_points_have_groups():
    same = Posterior(np.zeros((5, 2), np.float32), np.ones((5, 2), np.float32))
    assert find_clusters(same, 2)[0].shape == (5,)
    assert find_clusters(same, 1)[0].tolist() == [0] * 5
    assert sorted(find_clusters(blobs(2, 2)[0], 4)[0].tolist()) == [0, 1, 2, 3]


def test_many_points_go_by_their_means(monkeypatch):
    monkeypatch.setattr(clusters, "MAX_SPECTRAL", 50)
    assert find_clusters(blobs(3, 30)[0], 3)[1] == "k-means of the means"


def test_more_islands_than_groups_are_joined_by_more_neighbours():
    points, truth = blobs(4, 40, apart=100.0)
    labels, route = find_clusters(points, 2)
    assert route.startswith("spectral")
    assert all(len(set(labels[truth == group].tolist())) == 1 for group in range(4))
