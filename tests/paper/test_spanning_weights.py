"""The paper's statements about maximal acyclic subgraphs and edge weights, one test each."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from corrvae.graphs import CorrelationGraph, spanning_weights
from support.forests import enumerate_forests
from support.resistance import conductances_of, forest_weights, from_networkx, laplacian


def is_acyclic(edges: list[list[int]], n_vertices: int) -> bool:
    tree_of = list(range(n_vertices))
    for i, j in edges:
        one, other = tree_of[i], tree_of[j]
        if one == other:
            return False
        tree_of = [one if tree == other else tree for tree in tree_of]
    return True


def listed(graph: CorrelationGraph) -> np.ndarray:
    """Maximal acyclic subgraphs by the definition: acyclic, and any further edge would close a cycle."""
    n_edges = graph.n_vertices - nx.number_connected_components(graph.to_networkx())
    edges = graph.edges.tolist()
    every = combinations(range(graph.n_edges), n_edges)
    forests = [chosen for chosen in every if is_acyclic([edges[e] for e in chosen], graph.n_vertices)]
    rows = np.zeros((len(forests), graph.n_edges), bool)
    for row, chosen in zip(rows, forests, strict=True):
        row[list(chosen)] = True
    return rows


def minor(matrix: np.ndarray, *deleted: int) -> int:
    kept = np.delete(np.arange(len(matrix)), deleted)
    return round(float(np.linalg.det(matrix[np.ix_(kept, kept)])))


def pseudo_inverse(graph: CorrelationGraph) -> np.ndarray:
    """L+ = (L + P)^-1 - P, with P the projection onto the null space of L: what is constant on each component."""
    matrix = laplacian(graph)
    same = graph.components[:, None] == graph.components
    null = same / same.sum(axis=1)
    inverse = np.linalg.inv(matrix + null) - null
    # what defines it: L L+ L = L, L+ L L+ = L+, both products symmetric
    product = matrix @ inverse
    assert np.allclose(product @ matrix, matrix, atol=1e-10)
    assert np.allclose(inverse @ product, inverse, atol=1e-8)
    assert np.allclose(product, product.T, atol=1e-10)
    return inverse


@dataclass(frozen=True)
class Case:
    """A graph, with what several tests need of it."""

    graph: CorrelationGraph

    @cached_property
    def forests(self) -> np.ndarray:
        return listed(self.graph)

    @cached_property
    def weights(self) -> np.ndarray:
        return spanning_weights(self.graph).weights


# every graph of up to 6 vertices, up to isomorphism
SMALL = [Case(from_networkx(graph)) for graph in nx.graph_atlas_g() if 1 <= graph.number_of_nodes() <= 6]
CONNECTED = [case for case in SMALL if case.graph.n_connected == 1]
WEIGHTED = [Case(from_networkx(case.graph.to_networkx(), seed)) for seed, case in enumerate(SMALL)]


def test_there_are_208_graphs_to_check():
    assert len(SMALL) == 208
    assert len(CONNECTED) == 143


def test_weights_are_shares_of_maximal_acyclic_subgraphs():
    """The definition of the weights, on every graph of up to 6 vertices."""
    for case in SMALL:
        assert np.array_equal(np.unique(case.forests, axis=0), np.unique(enumerate_forests(case.graph), axis=0))
        assert np.allclose(case.weights, case.forests.mean(axis=0), rtol=1e-12, atol=0.0), case.graph.edges


def test_conductances_weigh_the_subgraphs():
    """The same when a forest counts by the product of its conductances."""
    for case, plain in zip(WEIGHTED, SMALL, strict=True):
        assert case.graph.conductances is not None
        expected = forest_weights(case.graph, plain.forests)
        assert np.allclose(case.weights, expected, rtol=1e-11, atol=0.0), case.graph.edges


def test_matrix_tree_theorem():
    """The number of spanning trees is the (i, i)-cofactor of the Laplacian, for any i."""
    for case in CONNECTED:
        matrix = laplacian(case.graph)
        assert {minor(matrix, i) for i in range(case.graph.n_vertices)} == {len(case.forests)}


def test_trees_that_contain_an_edge():
    """Their number is the minor that is left without the rows and columns of both ends, and their share the weight."""
    for case in CONNECTED:
        matrix = laplacian(case.graph)
        for e, (i, j) in enumerate(case.graph.edges):
            count = minor(matrix, i, j)
            assert count == case.forests[:, e].sum()
            assert np.isclose(case.weights[e], count / minor(matrix, i), rtol=1e-12)


@pytest.mark.parametrize("cases", [SMALL, WEIGHTED], ids=["plain", "conductances"])
def test_weights_come_from_the_moore_penrose_inverse(cases):
    """w_ij = L+_ii - L+_ij - L+_ji + L+_jj, also for graphs that are not connected."""
    for case in cases:
        inverse = pseudo_inverse(case.graph)
        expected = [
            c * (inverse[i, i] - inverse[i, j] - inverse[j, i] + inverse[j, j])
            for (i, j), c in zip(case.graph.edges, conductances_of(case.graph), strict=True)
        ]
        assert np.allclose(case.weights, expected, atol=1e-10)


def test_weights_are_those_of_the_component():
    """An edge's weight in a graph is its weight in its connected component."""
    parts = [nx.complete_graph(4), nx.cycle_graph(5), nx.path_graph(3), nx.wheel_graph(7), nx.empty_graph(2)]
    together = spanning_weights(from_networkx(nx.disjoint_union_all(parts))).weights
    apart = [spanning_weights(from_networkx(part)).weights for part in parts]
    assert np.allclose(together, np.concatenate(apart), rtol=1e-13)


@pytest.mark.parametrize("cases", [SMALL, WEIGHTED], ids=["plain", "conductances"])
def test_the_sum_of_weights(cases):
    """Their sum is the number of vertices less the number of connected components."""
    for case in cases:
        n_connected = nx.number_connected_components(case.graph.to_networkx())
        assert np.isclose(case.weights.sum(), case.graph.n_vertices - n_connected, rtol=1e-13)


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
