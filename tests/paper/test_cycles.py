"""On a graph with cycles the weighted objective never exceeds log p(x) under the mixture over spanning forests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from support.forests import (
    forest_shares,
    log_evidence,
    prior_covariance,
    random_edges,
    spanning_forests,
    weights_by_enumeration,
)
from support.linear_gaussian import LinearGaussian

DECODER = np.array([[1.3], [-0.4]])


def case(n_vertices: int, density: float, tau: float, seed: int, weighted: bool) -> tuple[LinearGaussian, float]:
    generator = np.random.default_rng(seed)
    edges = random_edges(n_vertices, density, seed)
    conductances = generator.uniform(0.1, 3.0, len(edges)) if weighted else np.ones(len(edges))
    x = generator.normal(size=(n_vertices, 2))
    forests = spanning_forests(n_vertices, edges)
    shares = forest_shares(forests, conductances)
    of_forests = [log_evidence(x, DECODER, 0.6, prior_covariance(n_vertices, edges[list(f)], tau)) for f in forests]
    weights = weights_by_enumeration(n_vertices, edges, conductances)
    return LinearGaussian(x, DECODER, 0.6, edges, weights, tau), float(logsumexp(of_forests, b=shares))


def test_enumeration_gives_the_known_weights():
    complete = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    assert len(spanning_forests(4, complete)) == 16
    np.testing.assert_allclose(weights_by_enumeration(4, complete), 0.5)
    cycle = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    np.testing.assert_allclose(weights_by_enumeration(5, cycle), 0.75)
    np.testing.assert_allclose(weights_by_enumeration(5, np.array([[0, 1], [3, 4]])), 1.0)


@settings(max_examples=60)
@given(
    st.integers(2, 5), st.sampled_from([0.5, 0.8, 1.0]), st.floats(-0.95, 0.95), st.integers(0, 2**16), st.booleans()
)
def test_no_parameters_exceed_the_mixtures_evidence(n_vertices, density, tau, seed, weighted):
    model, evidence = case(n_vertices, density, tau, seed, weighted)
    for scale in (0.1, 0.5, 1.5):
        mean, log_stddev, a = model.random(seed, scale)
        assert float(model.objective(mean, log_stddev, a)) <= evidence + 1e-9
        assert float(model.objective(mean, log_stddev, None)) <= evidence + 1e-9


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tau", [0.6, 0.95])
def test_nor_does_the_maximum(weighted, tau):
    model, evidence = case(4, 1.0, tau, 3, weighted)
    correlated, independent = model.maximum(correlated=True), model.maximum(correlated=False)
    assert independent < correlated <= evidence + 1e-9
