import numpy as np
from scipy import stats
from sklearn.decomposition import PCA

from corrvae.datasets import tree


def test_it_is_a_random_recursive_tree():
    data = tree(3000, 2, n_components=1, n_hidden=1, random_state=0)
    parents, children = data.graph.edges.T
    assert data.graph.n_connected == 1
    assert sorted(children.tolist()) == list(range(1, 3000))
    assert (parents < children).all()
    # the parent of i is uniform below i
    assert stats.kstest((parents[children > 100] + 0.5) / children[children > 100], "uniform").pvalue > 1e-3


def test_neighbours_correlate_by_tau_and_every_position_is_standard_normal():
    tau = 0.9
    data = tree(4000, 2, n_components=3, n_hidden=1, tau=tau, random_state=1)
    parents, children = np.array(sorted(data.graph.edges.tolist(), key=lambda edge: edge[1])).T
    noise = (data.latents[children] - tau * data.latents[parents]) / np.sqrt(1 - tau**2)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3
    # the noise of a child is independent of its parent
    assert abs(np.corrcoef(noise.ravel(), data.latents[parents].ravel())[0, 1]) < 0.03
    roots = np.concatenate([tree(1, 1, n_components=40, n_hidden=1, random_state=k).latents[0] for k in range(20)])
    assert stats.kstest(roots, "norm").pvalue > 1e-3


def test_features_are_bernoulli_given_the_latents():
    # the decoder's weights follow from the seed: draw them again, in the order of the code
    n, dim, hidden, features = 4000, 2, 3, 5
    data = tree(n, features, n_components=dim, n_hidden=hidden, random_state=5)
    generator = np.random.default_rng(5)
    generator.integers(0, np.arange(1, n))
    generator.standard_normal((n, dim))
    first, second = generator.standard_normal((dim, hidden)), generator.standard_normal((hidden, features))
    probabilities = 1 / (1 + np.exp(-np.maximum(data.latents @ first, 0) @ second))
    spread = (data.features - probabilities) / np.sqrt(probabilities * (1 - probabilities))
    assert set(np.unique(data.features)) == {0.0, 1.0}
    assert data.features.dtype == np.float32
    # the mean of independent standardised variables
    assert np.abs(spread.mean(axis=0) * np.sqrt(n)).max() < 4


def test_labels_are_the_sides_of_the_first_principal_component():
    data = tree(500, 3, random_state=2)
    position = PCA(1).fit_transform(data.latents)[:, 0]
    side = position > np.median(position)
    # which of the two sides is called 1 does not matter
    assert (data.labels == side).all() or (data.labels != side).all()
    assert data.labels.sum() == 250


def test_one_seed_one_tree():
    first, second, other = (tree(30, 4, random_state=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.features, second.features)
    assert first.graph == second.graph
    assert not np.array_equal(first.latents, other.latents)
