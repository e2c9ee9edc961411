import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from corrvae.graphs import enumerate_forests
from corrvae.graphs.weights.tidy import restore_sum, shorted_weights
from support.elimination import conductance_matrix, exact_resistances
from support.graphs import graphs
from support.resistance import conductances_of, forest_weights


@given(graphs(max_vertices=6))
def test_shorting_gives_a_lower_bound(graph):
    lower = shorted_weights(graph.edges, conductances_of(graph), graph.n_vertices)
    assert np.all(lower > 0)
    assert np.all(lower <= forest_weights(graph, enumerate_forests(graph)) * (1 + 1e-9))


@given(graphs(max_vertices=8, min_vertices=3))
@settings(max_examples=50)
def test_shorting_joins_all_other_vertices(graph):
    conductances = conductances_of(graph)
    lower = shorted_weights(graph.edges, conductances, graph.n_vertices)
    full = conductance_matrix(graph)
    for e, (i, j) in enumerate(graph.edges):
        others = [v for v in range(graph.n_vertices) if v not in (i, j)]
        to_others = full[[i, j]][:, others].sum(axis=1)
        joined = np.array([[0, full[i, j], to_others[0]], [full[i, j], 0, to_others[1]], [*to_others, 0]])
        expected = conductances[e] * exact_resistances(joined)[0, 1] if to_others.any() else 1.0
        assert np.isclose(lower[e], expected, rtol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.floats(0.05, 0.95))
def test_the_nearest_estimates_with_the_right_sum(seed, n, where):
    generator = np.random.default_rng(seed)
    lower = generator.uniform(0.01, 0.4, n)
    weights = generator.uniform(lower, 1.0)
    variances = generator.uniform(0.1, 2.0, n)
    total = lower.sum() + where * (n - lower.sum())
    found = restore_sum(weights, variances, lower, total)
    # the nearest point moves each weight in proportion to its variance until it meets a bound
    shift = brentq(lambda t: np.clip(weights + t * variances, lower, 1.0).sum() - total, -20.0, 20.0, xtol=1e-14)
    assert np.isclose(found.sum(), total, rtol=1e-10)
    assert np.allclose(found, np.clip(weights + shift * variances, lower, 1.0), atol=1e-8)


def test_what_is_known_exactly_does_not_move():
    weights, variances = np.array([0.3, 0.9, 0.5]), np.array([0.0, 1.0, 1.0])
    found = restore_sum(weights, variances, np.zeros(3), 2.0)
    assert found[0] == 0.3
    assert np.allclose(found, [0.3, 1.0, 0.7])


def test_estimates_out_of_range_are_brought_back():
    found = restore_sum(np.array([1.4, -0.2, 0.5]), np.ones(3), np.full(3, 0.1), 1.6)
    assert np.array_equal(found, [1.0, 0.1, 0.5])


@pytest.mark.parametrize("total", [-1.0, 10.0])
def test_a_sum_out_of_reach_ends_at_the_bounds(total):
    lower = np.full(4, 0.2)
    found = restore_sum(np.full(4, 0.5), np.ones(4), lower, total)
    assert np.array_equal(found, np.ones(4) if total > 0 else lower)
