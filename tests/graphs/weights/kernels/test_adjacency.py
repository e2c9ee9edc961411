from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from corrvae.graphs.weights.kernels.adjacency import breadth_first, find_bridges
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
def test_breadth_first_search_reaches_components_one_after_another(graph):
    pointers, neighbors, _ = lists_of(graph)
    roots = np.flatnonzero(graph.degrees)
    order, parents, starts = breadth_first(pointers, neighbors, roots)
    known = graph.to_networkx()
    expected = {frozenset(piece) for piece in nx.connected_components(known) if len(piece) > 1}
    assert {frozenset(order[a:b].tolist()) for a, b in pairwise(starts)} == expected
    assert starts[-1] == order.size == roots.size
    assert np.array_equal(np.flatnonzero(parents < 0), starts[:-1])
    for k in np.flatnonzero(parents >= 0):
        assert parents[k] < k
        assert known.has_edge(order[parents[k]], order[k])
    for a, b in pairwise(starts):
        depth = nx.single_source_shortest_path_length(known, order[a])
        assert all(depth[order[k]] == depth[order[parents[k]]] + 1 for k in range(a + 1, b))
