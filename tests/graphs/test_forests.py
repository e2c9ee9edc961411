import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from corrvae.graphs import CorrelationGraph, sample_forest
from support.forests import enumerate_forests
from support.graphs import graphs
from support.resistance import forest_weights, from_networkx


def is_maximal_forest(graph: CorrelationGraph, forest: np.ndarray) -> bool:
    """Acyclic, and every other edge would close a cycle."""
    chosen = nx.Graph()
    chosen.add_nodes_from(range(graph.n_vertices))
    chosen.add_edges_from(graph.edges[forest].tolist())
    n_trees = nx.number_connected_components(chosen)
    return n_trees == graph.n_connected and len(forest) == graph.n_vertices - n_trees


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
