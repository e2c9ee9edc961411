import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.rooted_forest import RootedForest
from support.forests import random_forest


@given(st.integers(1, 12), st.integers(0, 2**16))
def test_every_vertex_comes_once_after_its_parent_by_an_edge_of_the_forest(n_vertices, seed):
    edges = random_forest(n_vertices, seed)
    forest = RootedForest.of(n_vertices, edges)
    graph = nx.Graph()
    graph.add_nodes_from(range(n_vertices))
    graph.add_edges_from(edges.tolist())
    assert forest.roots.tolist() == sorted(min(part) for part in nx.connected_components(graph))
    seen = forest.roots.tolist()
    for level in forest.levels:
        assert set(level.parents.tolist()) <= set(seen)
        for child, parent, edge in zip(level.children, level.parents, level.edges, strict=True):
            assert {child, parent} == set(edges[edge].tolist())
        seen += level.children.tolist()
    assert sorted(seen) == list(range(n_vertices))


def test_a_cycle_is_named_by_the_edge_that_closes_it():
    with pytest.raises(ValueError, match=r"edge 3 \(2, 0\) closes a cycle"):
        RootedForest.of(5, np.array([[0, 1], [3, 4], [1, 2], [2, 0]]))
    with pytest.raises(ValueError, match=r"edge 1 \(1, 0\) closes a cycle"):
        RootedForest.of(3, np.array([[0, 1], [1, 0]]))


def test_edges_must_join_two_vertices_that_exist():
    with pytest.raises(ValueError, match=r"pair 1 is \[0, 3\], but vertices are numbered from 0 to 2"):
        RootedForest.of(3, np.array([[0, 2], [0, 3]]))
