import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from corrvae.baselines import principal_components


def test_centred_projections_are_those_of_pca():
    X = np.random.default_rng(0).normal(size=(30, 6))
    expected = PCA(2, svd_solver="full").fit_transform(X)
    for form in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(np.abs(principal_components(form, 2)), np.abs(expected), rtol=1e-4, atol=1e-5)


def test_without_centring_it_is_the_singular_value_decomposition():
    X = sparse.random_array((40, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
    u, s, _ = np.linalg.svd(X.toarray(), full_matrices=False)
    found = principal_components(X, 3, center=False)
    np.testing.assert_allclose(np.abs(found), np.abs(u[:, :3] * s[:3]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("weighting", ["idf", "tfidf"])
def test_columns_are_weighted_by_how_rare_they_are(weighting):
    X = (np.random.default_rng(0).random((40, 8)) < np.linspace(0.05, 0.9, 8)).astype(float)
    X[:, 7] = 1.0
    weights = np.log(41 / (1 + X.sum(axis=0))) + 1
    assert weights[7] == 1.0
    assert weights[0] == weights.max() > 2
    weighted = X * weights
    if weighting == "tfidf":
        weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(weighted, full_matrices=False)
    for form in (X, sparse.csr_array(X)):
        found = principal_components(form, 3, weighting=weighting, center=False).astype(float)
        np.testing.assert_allclose(found @ found.T, (u[:, :3] * s[:3] ** 2) @ u[:, :3].T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("weighting", ["raw", "tfidf"])
@pytest.mark.parametrize("center", [True, False])
def test_other_rows_are_projected_and_say_nothing_about_the_directions(weighting, center):
    generator = np.random.default_rng(0)
    X, new = (sparse.csr_array(generator.poisson(0.6, (rows, 8)).astype(float)) for rows in (40, 6))
    settings = {"n_components": 3, "weighting": weighting, "center": center}
    own = principal_components(X, **settings)
    np.testing.assert_allclose(principal_components(X, **settings, project=X), own, rtol=1e-4, atol=1e-5)
    alone = principal_components(X, **settings, project=new)
    beside = principal_components(X, **settings, project=sparse.vstack([new, 9.0 * new]))
    np.testing.assert_allclose(beside[:6], alone, rtol=1e-5, atol=1e-6)
