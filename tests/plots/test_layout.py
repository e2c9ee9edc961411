import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from corrvae.plots.layout import project, spring_layout


def test_points_of_a_group_come_together_whatever_their_start():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(4), 30)
    neighbors = np.array(
        [rng.choice(np.flatnonzero((group == group[i]) & (np.arange(120) != i)), 10) for i in range(120)]
    )
    places = spring_layout(neighbors, rng.normal(size=(120, 2)))
    middles = np.stack([places[group == g].mean(axis=0) for g in range(4)])
    nearest = np.square(places[:, None] - middles).sum(axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.95
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-9)


def test_the_same_seed_gives_the_same_map():
    neighbors = np.array([[1, 2], [0, 2], [0, 1], [2, 1]])
    start = np.eye(4, 2)
    again = [spring_layout(neighbors, start, random_state=seed) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(again[0], again[1])
    assert not np.array_equal(again[0], again[2])


@pytest.mark.parametrize("n_points", [0, 1, 2, 5])
def test_few_points_without_neighbours_have_places(n_points):
    places = spring_layout(np.full((n_points, 3), -1), np.zeros((n_points, 2)))
    assert places.shape == (n_points, 2)
    assert np.isfinite(places).all()


@given(st.integers(2, 8), st.integers(3, 30), st.integers(0, 99))
def test_the_plane_is_that_of_principal_components(dim, n_points, seed):
    embedding = np.random.default_rng(seed).normal(size=(n_points, dim)) * np.arange(1, dim + 1)
    places, share = project(embedding)
    pca = PCA(2).fit(embedding)
    np.testing.assert_allclose(np.abs(places), np.abs(pca.transform(embedding)), atol=1e-8)
    assert share == pytest.approx(pca.explained_variance_ratio_.sum())


def test_a_map_does_not_depend_on_signs():
    embedding = np.random.default_rng(0).normal(size=(20, 3)) * [3, 2, 1]
    rotated = embedding @ np.diag([-1.0, 1.0, -1.0])
    assert np.abs(project(embedding)[0]).tolist() == pytest.approx(np.abs(project(rotated)[0]))
    assert project(embedding)[0].tolist() == project(embedding.copy())[0].tolist()


@pytest.mark.parametrize("embedding", [np.zeros((4, 3)), np.arange(5.0)[:, None]])
def test_few_dimensions_have_a_map(embedding):
    places, share = project(embedding)
    assert places.shape == (len(embedding), 2)
    assert share == 1.0


def test_other_maps_are_errors():
    with pytest.raises(ValueError, match='must be "pca" or "umap"'):
        project(np.eye(3), "tsne")
