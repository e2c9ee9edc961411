import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from corrvae import CorrelationGraph, spanning_weights
from corrvae.graphs import enumerate_forests
from corrvae.graphs.weights import small
from corrvae.graphs.weights.plan import SpanningPlan
from corrvae.graphs.weights.small import small_weights
from support.graphs import graphs


@given(graphs(max_vertices=6))
def test_weights_are_shares_of_all_forests(graph):
    graph = CorrelationGraph(graph.edges, graph.n_vertices)  # without conductances
    if graph.n_edges == 0:
        return
    counts, n_forests = np.zeros(graph.n_edges), 0
    for forest in enumerate_forests(graph):
        counts[forest] += 1
        n_forests += 1
    np.testing.assert_allclose(small_weights(graph), counts / n_forests, atol=1e-12)


@pytest.mark.parametrize(
    ("made", "expected"),
    [(nx.complete_graph(400), 2 / 400), (nx.cycle_graph(1500), 1499 / 1500), (nx.path_graph(1000), 1.0)],
)
def test_known_graphs(made, expected):
    found = small_weights(CorrelationGraph.from_networkx(made))
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert (found == 1.0).all() == (expected == 1.0)


def test_bridges_are_exactly_one_and_the_sum_is_vertices_less_components():
    made = nx.disjoint_union(nx.lollipop_graph(30, 200), nx.barbell_graph(40, 3))
    graph = CorrelationGraph.from_networkx(made)
    found = small_weights(graph)
    bridges = {frozenset(edge) for edge in nx.bridges(made)}
    assert [weight == 1.0 for weight in found] == [frozenset(pair) in bridges for pair in graph.id_pairs.tolist()]
    assert found.sum() == pytest.approx(graph.n_vertices - 2, rel=1e-12)


def test_small_and_large_graphs_are_told_apart(monkeypatch):
    graph = CorrelationGraph.from_networkx(nx.barabasi_albert_graph(200, 3, seed=0))
    monkeypatch.setattr(small, "LARGEST", 200)
    found = spanning_weights(graph)
    assert (found.method, found.error, found.route) == ("exact", 0.0, "exact: dense inverse of 199 vertices")
    np.testing.assert_allclose(found.weights, SpanningPlan(graph).solve().weights, rtol=1e-10)
    monkeypatch.setattr(small, "LARGEST", 199)
    assert "dense inverse" not in spanning_weights(graph).route
