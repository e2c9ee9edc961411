from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from corrvae.graphs.weights.kernels.adjacency import find_bridges, label_pieces, peel_leaves
from support.elimination import lists_of
from support.graphs import graphs
from support.resistance import from_networkx


@given(graphs(max_vertices=10))
def test_lists_hold_every_edge_at_both_ends(graph):
    pointers, neighbors, edge_of = lists_of(graph)
    assert pointers.size == graph.n_vertices + 1
    for v in range(graph.n_vertices):
        mine = range(pointers[v], pointers[v + 1])
        assert sorted(neighbors[t] for t in mine) == sorted(graph.to_networkx().neighbors(v))
        assert all(sorted((v, neighbors[t])) == graph.edges[edge_of[t]].tolist() for t in mine)


@given(graphs(max_vertices=14))
def test_bridges_are_those_of_networkx(graph):
    expected = {tuple(sorted(edge)) for edge in nx.bridges(graph.to_networkx())}
    is_bridge = find_bridges(graph.n_vertices, *lists_of(graph))
    assert is_bridge.shape == (graph.n_edges,)
    assert {tuple(edge) for edge in graph.edges[is_bridge].tolist()} == expected


@pytest.mark.parametrize(
    ("graph", "n_bridges"),
    [
        (nx.path_graph(100_000), 99_999),  # as deep as a search can go
        (nx.cycle_graph(100_000), 0),
        (nx.barbell_graph(5, 3), 4),
        (nx.empty_graph(4), 0),
    ],
    ids=["path", "cycle", "barbell", "no edges"],
)
def test_bridges_of_known_graphs(graph, n_bridges):
    graph = from_networkx(graph)
    assert find_bridges(graph.n_vertices, *lists_of(graph)).sum() == n_bridges


@given(graphs(max_vertices=14))
def test_peeling_leaves_the_2_core(graph):
    i, j = graph.edges.T.astype(np.int32)
    fallen = peel_leaves(graph.n_vertices, i.copy(), j.copy())
    expected = {tuple(sorted(edge)) for edge in nx.k_core(graph.to_networkx(), 2).edges}
    assert {tuple(edge) for edge in graph.edges[~fallen].tolist()} == expected


@pytest.mark.parametrize("seed", range(5))
def test_trees_peel_to_nothing(seed):
    tree = from_networkx(nx.random_labeled_tree(500, seed=seed))
    i, j = tree.edges.T.astype(np.int32)
    assert peel_leaves(500, i.copy(), j.copy()).all()


@given(graphs(max_vertices=14))
def test_pieces_are_runs_of_labels(graph):
    pointers, neighbors, _ = lists_of(graph)
    label, starts = label_pieces(graph.n_vertices, pointers, neighbors)
    expected = {frozenset(piece) for piece in nx.connected_components(graph.to_networkx()) if len(piece) > 1}
    assert starts[0] == 0
    assert starts.size == len(expected) + 1
    old = {int(new): v for v, new in enumerate(label) if new >= 0}
    assert sorted(old) == list(range(starts[-1]))
    found = {frozenset(old[k] for k in range(a, b)) for a, b in pairwise(starts)}
    assert found == expected
    assert np.array_equal(np.flatnonzero(label < 0), np.flatnonzero(graph.degrees == 0))
