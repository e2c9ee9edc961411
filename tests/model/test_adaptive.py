"""Adaptive forests against the distribution over all forests, listed one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from corrvae.graphs import CorrelationGraph, enumerate_forests
from corrvae.model import adaptive
from corrvae.model.adaptive import AdaptiveForests, ForestAdapter
from support.graphs import graphs
from support.resistance import conductances_of, scale_free


def listed(graph, edge_terms, eta):
    """Probabilities of all forests under the graph's own conductances, and under the adapted ones."""
    forests = enumerate_forests(graph).astype(float)
    own = forests @ np.log(conductances_of(graph))
    return forests, softmax(own), softmax(own - eta * forests @ edge_terms)


@given(graphs(max_vertices=6), st.integers(0, 2**16), st.sampled_from([0.0, 0.3, 1.0, 2.5]))
def test_weights_and_divergence_are_those_of_all_forests(graph, seed, eta):
    edge_terms = np.random.default_rng(seed).normal(size=graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=eta)).adapt(edge_terms)
    forests, own, adapted = listed(graph, edge_terms, eta)
    assert np.allclose(found.weights, adapted @ forests, atol=1e-9)
    assert np.isclose(found.divergence, adapted @ np.log(adapted / own), atol=1e-9)
    assert found.eta == eta


@given(graphs(max_vertices=5), st.integers(0, 2**16), st.floats(0.1, 3.0))
def test_no_distribution_over_forests_has_less_of_edge_terms_and_divergence_together(graph, seed, eta):
    generator = np.random.default_rng(seed)
    edge_terms = generator.normal(size=graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=eta)).adapt(edge_terms)
    forests, own, _ = listed(graph, edge_terms, eta)
    best = found.weights @ edge_terms + found.divergence / eta
    for other in (own, *generator.dirichlet(np.ones(len(own)), size=20)):
        kept = other > 0
        divergence = other[kept] @ np.log(other[kept] / own[kept])
        assert best <= other @ forests @ edge_terms + divergence / eta + 1e-9


def test_without_a_count_of_forests_the_divergence_is_integrated(monkeypatch):
    graph = scale_free(300, 1)
    edge_terms = np.random.default_rng(0).normal(size=graph.n_edges)
    exact = ForestAdapter(graph, AdaptiveForests(eta=0.5)).adapt(edge_terms)
    sketching = adaptive.SpanningPlan
    monkeypatch.setattr(
        adaptive, "SpanningPlan", lambda graph, **options: sketching(graph, method="sketch", epsilon=0.01, **options)
    )
    sketched = ForestAdapter(graph, AdaptiveForests(eta=0.5)).adapt(edge_terms)
    assert np.isclose(sketched.divergence, exact.divergence, rtol=0.05)


def test_a_cycle_loses_the_edge_that_is_not_supported():
    cycle = CorrelationGraph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)])
    found = ForestAdapter(cycle, AdaptiveForests(eta=1.0)).adapt(np.array([0.0, 50.0, 0.0, 0.0]))
    assert found.weights[1] < 1e-9
    assert np.allclose(np.delete(found.weights, 1), 1.0)
    assert np.isfinite(found.divergence)


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_any_range_of_edge_terms_stays_finite(method, monkeypatch):
    graph, plan = scale_free(200), adaptive.SpanningPlan
    monkeypatch.setattr(adaptive, "SpanningPlan", lambda graph, **options: plan(graph, method=method, **options))
    edge_terms = np.random.default_rng(0).uniform(0.0, 1e6, graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=1.0)).adapt(edge_terms)
    assert found.conductances.min() == pytest.approx(1e-12)
    assert found.weights.sum() == pytest.approx(graph.n_vertices - graph.n_connected, rel=1e-6)
    assert np.isfinite(found.divergence)


def test_automatic_eta_is_one_over_the_spread_and_at_most_one():
    edge_terms = np.array([0.0, 10.0, -10.0, 4.0])
    assert AdaptiveForests().eta_of(edge_terms) == pytest.approx(1.0 / edge_terms.std())
    assert AdaptiveForests().eta_of(edge_terms / 1000.0) == 1.0


@pytest.mark.parametrize("options", [{"eta": -1.0}, {"eta": np.inf}, {"first": 0}, {"every": -2}])
def test_impossible_options_get_a_sentence(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))} must be"):
        AdaptiveForests(**options).check()
