"""The paper's statements about maximal acyclic subgraphs and edge weights, one test each."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from corrvae.graphs import CorrelationGraph, enumerate_forests, spanning_weights
from support.resistance import conductances_of, forest_weights, from_networkx, laplacian

SMALL = [graph for graph in nx.graph_atlas_g() if 1 <= graph.number_of_nodes() <= 6]  # up to isomorphism
CONNECTED = [graph for graph in SMALL if nx.is_connected(graph)]


def listed(graph: CorrelationGraph) -> np.ndarray:
    """Maximal acyclic subgraphs by the definition: acyclic, and any further edge would close a cycle."""
    n_edges = graph.n_vertices - nx.number_connected_components(graph.to_networkx())
    rows = []
    for chosen in combinations(range(graph.n_edges), n_edges):
        subgraph = nx.Graph(graph.edges[list(chosen)].tolist())
        if n_edges == 0 or nx.is_forest(subgraph):
            row = np.zeros(graph.n_edges, bool)
            row[list(chosen)] = True
            rows.append(row)
    return np.array(rows)


def minor(matrix: np.ndarray, *deleted: int) -> int:
    kept = np.delete(np.arange(len(matrix)), deleted)
    return round(float(np.linalg.det(matrix[np.ix_(kept, kept)])))


def test_there_are_208_graphs_to_check():
    assert len(SMALL) == 208
    assert len(CONNECTED) == 143


def test_weights_are_shares_of_maximal_acyclic_subgraphs():
    """The definition of the weights, on every graph of up to 6 vertices."""
    for atlas in SMALL:
        graph = from_networkx(atlas)
        forests = listed(graph)
        assert np.array_equal(np.unique(forests, axis=0), np.unique(enumerate_forests(graph), axis=0))
        weights = spanning_weights(graph).weights
        assert np.allclose(weights, forests.mean(axis=0), rtol=1e-12, atol=0.0), atlas


def test_conductances_weigh_the_subgraphs():
    """The same when a forest counts by the product of its conductances."""
    for seed, atlas in enumerate(SMALL):
        graph = from_networkx(atlas, seed)
        weights = spanning_weights(graph).weights
        assert np.allclose(weights, forest_weights(graph, listed(graph)), rtol=1e-11, atol=0.0), atlas


def test_matrix_tree_theorem():
    """The number of spanning trees is the (i, i)-cofactor of the Laplacian, for any i."""
    for atlas in CONNECTED:
        graph = from_networkx(atlas)
        n_trees = len(enumerate_forests(graph))
        assert {minor(laplacian(graph), i) for i in range(graph.n_vertices)} == {n_trees}


def test_trees_that_contain_an_edge():
    """Their number is the minor that is left without the rows and columns of both ends, and their share the weight."""
    for atlas in CONNECTED:
        graph = from_networkx(atlas)
        forests = enumerate_forests(graph)
        weights = spanning_weights(graph).weights
        for e, (i, j) in enumerate(graph.edges):
            count = minor(laplacian(graph), i, j)
            assert count == forests[:, e].sum()
            assert np.isclose(weights[e], count / minor(laplacian(graph), i), rtol=1e-12)


@pytest.mark.parametrize("conductance_seed", [None, 1])
def test_weights_come_from_the_moore_penrose_inverse(conductance_seed):
    """w_ij = L+_ii - L+_ij - L+_ji + L+_jj, also for graphs that are not connected."""
    for atlas in SMALL:
        graph = from_networkx(atlas, conductance_seed)
        inverse = np.linalg.pinv(laplacian(graph), rcond=1e-12, hermitian=True)
        expected = [
            c * (inverse[i, i] - inverse[i, j] - inverse[j, i] + inverse[j, j])
            for (i, j), c in zip(graph.edges, conductances_of(graph), strict=True)
        ]
        assert np.allclose(spanning_weights(graph).weights, expected, atol=1e-10)


def test_weights_are_those_of_the_component():
    """An edge's weight in a graph is its weight in its connected component."""
    parts = [nx.complete_graph(4), nx.cycle_graph(5), nx.path_graph(3), nx.wheel_graph(7), nx.empty_graph(2)]
    together = spanning_weights(from_networkx(nx.disjoint_union_all(parts))).weights
    apart = [spanning_weights(from_networkx(part)).weights for part in parts]
    assert np.allclose(together, np.concatenate(apart), rtol=1e-13)


def test_the_sum_of_weights():
    """Their sum is the number of vertices less the number of connected components."""
    for atlas in SMALL:
        total = spanning_weights(from_networkx(atlas)).weights.sum()
        assert np.isclose(total, len(atlas) - nx.number_connected_components(atlas), rtol=1e-13)


@pytest.mark.parametrize("n_vertices", [2, 3, 4, 5, 10, 63, 64, 65, 200])
def test_complete_graphs(n_vertices):
    """All weights of K_n are 2 / n; those of K_4 are 1/2."""
    weights = spanning_weights(from_networkx(nx.complete_graph(n_vertices))).weights
    assert np.allclose(weights, 2 / n_vertices, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("length", [3, 4, 5, 17, 100, 10_000])
def test_cycles(length):
    """Each of the k maximal acyclic subgraphs of a cycle of length k misses one edge."""
    weights = spanning_weights(from_networkx(nx.cycle_graph(length))).weights
    assert np.allclose(weights, (length - 1) / length, rtol=1e-12, atol=0.0)


def test_acyclic_graphs_contain_themselves_alone():
    """A forest's only maximal acyclic subgraph is the forest: all weights are exactly 1."""
    for seed in range(5):
        forest = from_networkx(nx.disjoint_union(nx.random_labeled_tree(40, seed=seed), nx.path_graph(7)), seed)
        assert np.all(spanning_weights(forest).weights == 1.0)
        assert len(enumerate_forests(forest)) == 1


def test_a_graph_with_48_maximal_acyclic_subgraphs():
    """As in the paper's figure, each is a spanning tree of every component: 16 of K_4 times 3 of a triangle."""
    graph = from_networkx(nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(3)))
    forests = enumerate_forests(graph)
    assert len(forests) == len(np.unique(forests, axis=0)) == 48
    assert {(row[:6].sum(), row[6:].sum()) for row in forests} == {(3, 2)}
    assert len(np.unique(forests[:, :6], axis=0)) == 16
    weights = spanning_weights(graph).weights
    assert np.allclose(weights, forests.mean(axis=0), rtol=1e-13)
    assert np.allclose(weights, [1 / 2] * 6 + [2 / 3] * 3, rtol=1e-13)
