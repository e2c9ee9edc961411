import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.answers import clusters as module
from corrvae.answers.clusters import find_clusters
from corrvae.scoring.points import Points
from corrvae.tasks.metrics import adjusted_rand_index
from support.correlated import make_model, make_points, random_rows


def blobs(sizes, *, apart=10.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    corners = apart * np.eye(len(sizes), 4)
    order = rng.permutation(len(truth))
    mean = (corners[truth] + rng.normal(size=(len(truth), 4)))[order]
    return Points.of(mean, np.full_like(mean, 0.1)), truth[order]


@pytest.mark.parametrize("method", ["spectral", "kmeans", "auto"])
def test_groups_that_are_there_are_found_and_numbered_by_size(method):
    points, truth = blobs([20, 50, 35])
    found = find_clusters(points, 3, method=method)
    assert adjusted_rand_index(truth, found.labels) == 1.0
    assert found.sizes.tolist() == [50, 35, 20]
    assert found.method == ("kmeans" if method == "kmeans" else "spectral")


@pytest.mark.parametrize("dense", [module._DENSE, 10])
def test_two_rings_are_told_apart_by_their_neighbours(dense, monkeypatch):
    """k-means cannot, as no line parts them; both ways of finding eigenvectors can."""
    monkeypatch.setattr(module, "_DENSE", dense)
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    mean = np.concatenate([ring, 3 * ring]) + 0.03 * np.random.default_rng(0).normal(size=(160, 2))
    points, truth = Points.of(mean, np.full((160, 2), 0.05)), np.repeat([0, 1], 80)
    assert adjusted_rand_index(truth, find_clusters(points, 2, method="spectral").labels) == 1.0
    assert adjusted_rand_index(truth, find_clusters(points, 2, method="kmeans").labels) < 0.5


def test_more_neighbours_are_asked_for_while_there_are_more_parts_than_groups():
    points, truth = blobs([30, 30, 30], apart=100.0)
    found = find_clusters(points, 2, method="spectral")
    assert sorted(found.sizes.tolist()) == [30, 60]
    assert all(len(np.unique(found.labels[truth == group])) == 1 for group in range(3))
    assert "30 nearest" in found.route or "60 nearest" in found.route


def test_where_the_graph_would_grow_too_large_the_means_are_grouped(monkeypatch):
    points, _ = blobs([30, 30, 30], apart=100.0)
    monkeypatch.setattr(module, "_MOST_ENTRIES", 100)
    found = find_clusters(points, 2)
    assert found.method == "kmeans"
    assert "fall apart" in found.route
    with pytest.raises(ValueError, match="use kmeans"):
        find_clusters(points, 2, method="spectral")


def test_many_points_are_grouped_by_their_means(monkeypatch):
    monkeypatch.setattr(module, "MOST_SPECTRAL", 50)
    assert find_clusters(blobs([20, 31])[0], 2).method == "kmeans"
    assert find_clusters(blobs([20, 30])[0], 2).method == "spectral"


def test_correlations_count_in_a_pairwise_model():
    """Without vectors the same points have other neighbours, hence another graph."""
    points = make_points(make_model("perceptron"), random_rows(40), spread=3.0)
    with_them = module._neighbor_graph(points, 3, False)
    without = module._neighbor_graph(Points.of(points.mean, points.stddev), 3, False)
    assert with_them is not None
    assert without is not None
    assert (with_them.graph.toarray() != without.graph.toarray()).any()


@settings(max_examples=25)
@given(
    n_points=st.integers(1, 25),
    n_clusters=st.integers(1, 25),
    method=st.sampled_from(["auto", "kmeans"]),
    few=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_point_has_a_group(n_points, n_clusters, method, few, seed):
    rng = np.random.default_rng(seed)
    mean = rng.integers(0, 2, (n_points, 2)).astype(float) if few else rng.normal(size=(n_points, 2))
    points, n_clusters = Points.of(mean, np.ones((n_points, 2))), min(n_clusters, n_points)
    found = find_clusters(points, n_clusters, method=method, seed=seed)
    assert found.labels.shape == (n_points,)
    assert (np.diff(found.sizes) <= 0).all()
    assert found.sizes.min() > 0
    assert len(found.sizes) <= n_clusters
    assert np.array_equal(found.labels, find_clusters(points, n_clusters, method=method, seed=seed).labels)


@pytest.mark.parametrize(
    ("count", "method", "words"), [(0, "auto", "1 to 9"), (10, "auto", "1 to 9"), (2, "dbscan", "method")]
)
def test_what_cannot_be_is_refused(count, method, words):
    with pytest.raises(ValueError, match=words):
        find_clusters(blobs([4, 5])[0], count, method=method)


def test_many_groups_of_many_points_are_grouped_by_their_means(monkeypatch):
    monkeypatch.setattr(module, "_MOST_DENSE", 20)
    points = Points.of(np.random.default_rng(0).normal(size=(30, 2)), np.full((30, 2), 0.1))
    monkeypatch.setattr(module, "_DENSE", 5)
    assert find_clusters(points, 9).method == "spectral"
    found = find_clusters(points, 10)
    assert (found.method, found.route) == ("kmeans", "k-means of the means")
    with pytest.raises(ValueError, match="10 groups of 30 points are too many for spectral clustering; use kmeans"):
        find_clusters(points, 10, method="spectral")
