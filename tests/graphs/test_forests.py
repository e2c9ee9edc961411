import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from corrvae.graphs import CorrelationGraph, enumerate_forests, sample_forest
from corrvae.graphs.forests import forest_levels
from support.forests import random_forest
from support.graphs import graphs
from support.resistance import forest_weights, from_networkx


def is_maximal_forest(graph: CorrelationGraph, forest: np.ndarray) -> bool:
    """Acyclic, and every other edge would close a cycle."""
    chosen = nx.Graph()
    chosen.add_nodes_from(range(graph.n_vertices))
    chosen.add_edges_from(graph.edges[forest].tolist())
    n_trees = nx.number_connected_components(chosen)
    return n_trees == graph.n_connected and len(forest) == graph.n_vertices - n_trees


@given(graphs(max_vertices=6))
def test_lists_every_maximal_forest_once(graph):
    forests = enumerate_forests(graph)
    assert len({row.tobytes() for row in forests}) == len(forests)
    assert all(is_maximal_forest(graph, np.flatnonzero(row)) for row in forests)
    expected = 1
    for component in nx.connected_components(graph.to_networkx()):
        part = graph.to_networkx().subgraph(component)
        expected *= round(nx.number_of_spanning_trees(part)) if len(part) > 1 else 1
    assert len(forests) == expected


@pytest.mark.parametrize("n_vertices", [1, 2, 3, 4, 5, 6])
def test_cayleys_formula(n_vertices):
    forests = enumerate_forests(from_networkx(nx.complete_graph(n_vertices)))
    assert len(forests) == max(1, n_vertices ** (n_vertices - 2))


def test_long_paths_and_cycles_are_listed():
    assert enumerate_forests(from_networkx(nx.path_graph(700))).shape == (1, 699)
    assert len(enumerate_forests(from_networkx(nx.cycle_graph(80)))) == 80


def test_few_forests_behind_many_bridges_are_found_at_once():
    assert len(enumerate_forests(from_networkx(nx.lollipop_graph(4, 150)))) == 16


def test_too_many_forests_raise():
    with pytest.raises(ValueError, match=r"about 10\^456 maximal"):
        enumerate_forests(from_networkx(nx.complete_graph(200)))
    with pytest.raises(ValueError, match=r"about 100,000,000 maximal acyclic subgraphs, more than limit=1,000,000"):
        enumerate_forests(from_networkx(nx.complete_graph(10)))


@given(graphs(max_vertices=8), st.integers(0, 2**32))
@settings(max_examples=50)
def test_a_sample_is_a_maximal_forest_and_repeats_with_its_seed(graph, seed):
    forest = sample_forest(graph, seed)
    assert is_maximal_forest(graph, forest)
    assert np.array_equal(forest, np.sort(forest))
    assert np.array_equal(forest, sample_forest(graph, seed))


@pytest.mark.parametrize("conductance_seed", [None, 3])
def test_samples_follow_their_distribution(conductance_seed):
    # a bridge, a triangle and a square with a diagonal: 3 * 8 forests
    graph = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4))
    graph.add_edges_from([(3, 5), (2, 3)])
    graph = from_networkx(graph, conductance_seed)
    forests = enumerate_forests(graph)
    position = {row.tobytes(): k for k, row in enumerate(forests)}
    generator = np.random.default_rng(0)
    counts = np.zeros(len(forests))
    n_samples = 1000
    for _ in range(n_samples):
        row = np.zeros(graph.n_edges, bool)
        row[sample_forest(graph, generator)] = True
        counts[position[row.tobytes()]] += 1
    products = np.ones(len(forests)) if graph.conductances is None else np.exp(forests @ np.log(graph.conductances))
    assert chisquare(counts, n_samples * products / products.sum()).pvalue > 1e-3
    assert np.allclose(counts @ forests / n_samples, forest_weights(graph, forests), atol=0.06)


@given(st.integers(1, 12), st.integers(0, 2**16))
def test_every_vertex_comes_once_after_its_parent_by_an_edge_of_the_forest(n_vertices, seed):
    edges = random_forest(n_vertices, seed)
    graph = nx.Graph()
    graph.add_nodes_from(range(n_vertices))
    graph.add_edges_from(edges.tolist())
    seen = [min(part) for part in nx.connected_components(graph)]
    for children, parents, joining in forest_levels(n_vertices, edges):
        assert set(parents.tolist()) <= set(seen)
        for child, parent, edge in zip(children, parents, joining, strict=True):
            assert {child, parent} == set(edges[edge].tolist())
        seen += children.tolist()
    assert sorted(seen) == list(range(n_vertices))


def test_a_cycle_is_named_by_the_edge_that_closes_it():
    with pytest.raises(ValueError, match=r"edge 3 \(2, 0\) closes a cycle"):
        next(forest_levels(5, np.array([[0, 1], [3, 4], [1, 2], [2, 0]])))
    with pytest.raises(ValueError, match=r"edge 1 \(1, 0\) closes a cycle"):
        next(forest_levels(3, np.array([[0, 1], [1, 0]])))
