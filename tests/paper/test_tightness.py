"""On a tree the correlated posterior reaches log p(x), the independent one stays below, and nothing exceeds it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.forests import log_evidence, prior_covariance, random_forest
from support.linear_gaussian import LinearGaussian

DIAGONAL = {
    1: np.array([[1.3], [-0.4], [0.8]]),
    2: np.array([[1.0, 0.5], [0.5, -1.0], [0.2, 0.0]]) - np.array([[0.0, 0.0], [0.0, 0.0], [0.2, 0.0]]),
}


def case(n_components: int, tau: float, seed: int, n_vertices: int = 5) -> tuple[LinearGaussian, float]:
    decoder, generator = DIAGONAL[n_components], np.random.default_rng(seed)
    edges = random_forest(n_vertices, seed)
    model = LinearGaussian(generator.normal(size=(n_vertices, 3)), decoder, 0.6, edges, np.ones(len(edges)), tau)
    return model, log_evidence(model.x, decoder, 0.6, prior_covariance(n_vertices, edges, tau))


def test_the_decoders_have_a_diagonal_gram_matrix():
    for decoder in DIAGONAL.values():
        gram = decoder.T @ decoder
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("tau", [0.5, 0.95, -0.8])
@pytest.mark.parametrize("seed", [0, 1])
def test_correlated_is_tight_and_independent_is_not(n_components, tau, seed):
    model, evidence = case(n_components, tau, seed)
    assert len(model.edges) > 1
    assert model.maximum(correlated=True) == pytest.approx(evidence, abs=1e-6)
    assert model.maximum(correlated=False) < evidence - 1e-3


@settings(max_examples=200)
@given(st.sampled_from([1, 2]), st.floats(-0.95, 0.95), st.integers(0, 2**16), st.sampled_from([0.1, 0.5, 1.5]))
def test_no_parameters_exceed_the_evidence(n_components, tau, seed, scale):
    model, evidence = case(n_components, tau, seed, 4)
    mean, log_stddev, a = model.random(seed, scale)
    assert float(model.objective(mean, log_stddev, a)) <= evidence + 1e-9
    assert float(model.objective(mean, log_stddev, None)) <= evidence + 1e-9
