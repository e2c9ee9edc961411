"""Adaptive forests against the distribution over all forests, listed one by one."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from corrvae.graphs import CorrelationGraph
from corrvae.model import adaptive
from corrvae.model.adaptive import AdaptiveForests, ForestAdapter
from support.forests import enumerate_forests
from support.graphs import graphs
from support.resistance import conductances_of, scale_free


def acyclic_subgraphs(graph):
    """All acyclic subgraphs as rows, and the number of ways to choose a root in each of their trees."""
    rows, roots = [], []
    for size in range(graph.n_vertices):
        for chosen in combinations(range(graph.n_edges), size):
            found = nx.Graph(graph.edges[list(chosen)].tolist())
            found.add_nodes_from(range(graph.n_vertices))
            if nx.is_forest(found):
                rows.append(np.isin(np.arange(graph.n_edges), chosen))
                roots.append([len(tree) for tree in nx.connected_components(found)])
    return np.array(rows, float).reshape(len(rows), graph.n_edges), roots


def listed(graph, edge_terms, eta, ground):
    """All acyclic subgraphs, and their probabilities under the graph's own conductances and under the adapted ones."""
    forests, roots = acyclic_subgraphs(graph)
    own = forests @ np.log(conductances_of(graph)) + [np.log(np.multiply(ground, sizes)).sum() for sizes in roots]
    return forests, softmax(own), softmax(own - eta * forests @ edge_terms)


@given(graphs(max_vertices=5), st.integers(0, 2**16), st.sampled_from([0.0, 0.3, 1.0, 2.5]), st.floats(1e-3, 10.0))
def test_weights_and_divergence_are_those_of_all_acyclic_subgraphs(graph, seed, eta, ground):
    edge_terms = np.random.default_rng(seed).normal(size=graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=eta, ground=ground)).adapt(edge_terms)
    forests, own, adapted = listed(graph, edge_terms, eta, ground)
    expected = conductances_of(graph) * np.exp(-eta * edge_terms)
    assert np.allclose(found.conductances, expected)
    assert np.allclose(found.weights, adapted @ forests, atol=1e-9)
    assert np.isclose(found.divergence, adapted @ np.log(adapted / own), atol=1e-9)
    assert found.eta == eta


@given(graphs(max_vertices=5), st.integers(0, 2**16), st.floats(0.1, 3.0))
def test_no_distribution_over_forests_has_less_of_edge_terms_and_divergence_together(graph, seed, eta):
    generator = np.random.default_rng(seed)
    edge_terms = generator.normal(size=graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=eta)).adapt(edge_terms)
    forests, own, _ = listed(graph, edge_terms, eta, 1.0)
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


def test_edges_that_are_not_supported_are_dropped_bridges_among_them():
    graph = CorrelationGraph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)])
    wrong = np.array([False, False, True, False, True])  # (1, 2) and (3, 4) in the order of the graph
    assert graph.edges[wrong].tolist() == [[1, 2], [3, 4]]
    found = ForestAdapter(graph, AdaptiveForests(eta=1.0)).adapt(np.where(wrong, 50.0, -10.0))
    assert np.all(found.weights[wrong] < 1e-3)
    assert np.all(found.weights[~wrong] > 0.999)
    assert np.isfinite(found.divergence)


@given(graphs(max_vertices=6), st.integers(0, 2**16))
def test_without_a_ground_subgraphs_are_maximal(graph, seed):
    edge_terms = np.random.default_rng(seed).normal(size=graph.n_edges)
    none, small = (ForestAdapter(graph, AdaptiveForests(eta=0.5, ground=g)).adapt(edge_terms) for g in (0.0, 1e-9))
    forests = enumerate_forests(graph).astype(float)
    own = forests @ np.log(conductances_of(graph))
    adapted = softmax(own - 0.5 * forests @ edge_terms)
    assert np.allclose(none.weights, adapted @ forests, atol=1e-9)
    assert np.isclose(none.divergence, adapted @ np.log(adapted / softmax(own)), atol=1e-9)
    assert np.allclose(small.weights, none.weights, atol=1e-4)


@given(graphs(max_vertices=5, weighted=False), st.integers(0, 2**16))
def test_conductances_from_1e_12_to_1_have_the_weights_of_all_acyclic_subgraphs(graph, seed):
    logs = np.random.default_rng(seed).uniform(np.log(1e-12), 0.0, graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=1.0)).adapt(-logs)
    forests, _, adapted = listed(graph, -logs, 1.0, 1.0)
    assert np.allclose(found.weights, adapted @ forests, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_any_range_of_edge_terms_stays_finite(method, monkeypatch):
    graph, plan = scale_free(200), adaptive.SpanningPlan
    monkeypatch.setattr(adaptive, "SpanningPlan", lambda graph, **options: plan(graph, method=method, **options))
    edge_terms = np.random.default_rng(0).uniform(0.0, 1e6, graph.n_edges)
    found = ForestAdapter(graph, AdaptiveForests(eta=1.0)).adapt(edge_terms)
    assert found.conductances.min() == pytest.approx(1e-12)
    assert 0.0 < found.weights.sum() < 1.0
    assert np.isfinite(found.divergence)


def test_automatic_eta_is_three_over_the_spread_and_at_most_one():
    edge_terms = np.array([0.0, 10.0, -10.0, 4.0])
    assert AdaptiveForests().eta_of(edge_terms) == pytest.approx(3.0 / edge_terms.std())
    assert AdaptiveForests().eta_of(edge_terms / 1000.0) == 1.0


def test_updates_come_whenever_the_steps_have_grown_by_half():
    assert [step for step in range(1, 60) if AdaptiveForests().is_due(step, 10)] == [10, 15, 23, 34, 51]


@pytest.mark.parametrize("options", [{"eta": -1.0}, {"eta": np.inf}, {"first": 0}, {"ground": -1.0}])
def test_impossible_options_get_a_sentence(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))} must be"):
        AdaptiveForests(**options).check()
