from dataclasses import fields

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.pattern import Pieces, build_structure, order_pieces, pattern_bytes, split_into_pieces
from corrvae.monitor import Cancelled, Monitor
from support.elimination import column_pairs, symbolic_fill
from support.graphs import graphs
from support.resistance import from_networkx, scale_free


def without_bridges(graph: CorrelationGraph) -> nx.Graph:
    rest = graph.to_networkx()
    rest.remove_edges_from(list(nx.bridges(rest)))
    rest.remove_nodes_from(list(nx.isolates(rest)))
    return rest


def vertices_of(pieces: Pieces, graph: CorrelationGraph) -> list[int]:
    """The graph's vertex behind each relabelled one: what all edges at it share."""
    found = []
    for v in range(pieces.n_vertices):
        edges = graph.edges[pieces.edge_of[pieces.pointers[v] : pieces.pointers[v + 1]]]
        (vertex,) = set.intersection(*(set(edge) for edge in edges.tolist()))  # bridgeless: two edges at least
        found.append(vertex)
    return found


@given(graphs(max_vertices=14))
def test_pieces_are_what_bridges_leave(graph):
    pieces = split_into_pieces(graph)
    rest = without_bridges(graph)
    kept = {tuple(edge) for edge in graph.edges[pieces.kept].tolist()}
    assert kept == {tuple(sorted(edge)) for edge in rest.edges}
    assert np.array_equal(np.flatnonzero(~pieces.is_bridge), pieces.kept)
    assert pieces.n_vertices == len(rest)
    assert np.array_equal(np.sort(pieces.edge_of), np.repeat(pieces.kept, 2))
    vertex = vertices_of(pieces, graph)
    assert sorted(vertex) == sorted(rest)
    for v in range(pieces.n_vertices):
        for t in range(pieces.pointers[v], pieces.pointers[v + 1]):
            assert sorted((vertex[v], vertex[pieces.neighbors[t]])) == graph.edges[pieces.edge_of[t]].tolist()
    runs = {frozenset(vertex[a:b]) for a, b in zip(pieces.starts[:-1], pieces.starts[1:], strict=True)}
    assert runs == {frozenset(piece) for piece in nx.connected_components(rest)}


@given(graphs(max_vertices=14), st.data())
def test_a_structure_covers_the_chosen_pieces(graph, data):
    pieces, monitor = split_into_pieces(graph), Monitor()
    ordering = order_pieces(pieces, monitor)
    every = range(pieces.starts.size - 1)
    chosen = np.array([piece for piece in every if data.draw(st.booleans())], np.int64)
    n_pivots = np.diff(ordering.piece_pivots)[chosen]
    n_eliminated = np.array([data.draw(st.integers(0, int(n))) for n in n_pivots], np.int64)
    structure = build_structure(pieces, ordering, chosen, n_eliminated, monitor)

    n_positions = structure.columns.size - 1
    in_chosen = np.concatenate([np.zeros(0, np.int64), *(np.arange(*pieces.starts[c : c + 2]) for c in chosen)])
    assert n_positions == in_chosen.size
    edges_of = [pieces.edge_of[pieces.pointers[v] : pieces.pointers[v + 1]] for v in in_chosen]
    assert sorted(structure.later_edges) == sorted(set(np.concatenate([np.zeros(0, np.int64), *edges_of])))
    assert structure.starts.size == n_eliminated.sum()
    assert np.array_equal(structure.starts, np.append(0, structure.ends)[:-1])
    assert structure.first == (structure.ends[-1] if structure.ends.size else 0)

    counts = np.diff(structure.later_pointers)
    pairs = np.column_stack([np.repeat(np.arange(n_positions), counts), structure.later_rows])
    fill = symbolic_fill(n_positions, pairs, structure.first)
    assert set(column_pairs(structure)) == {(j, i) for j, later in enumerate(fill) for i in later}


def test_the_core_comes_after_all_that_is_eliminated():
    pieces, monitor = split_into_pieces(scale_free(300)), Monitor()
    ordering = order_pieces(pieces, monitor, degree_limit=6)
    n_pivots = np.diff(ordering.piece_pivots)
    assert ordering.piece_ordered[0] < pieces.n_vertices
    for n_eliminated in (n_pivots, n_pivots - 1, np.zeros(1, np.int64)):
        structure = build_structure(pieces, ordering, np.array([0]), n_eliminated, monitor)
        cut = int(n_eliminated[0])
        begin = ordering.pivot_starts[cut] if cut < n_pivots[0] else ordering.piece_ordered[0]
        assert structure.first == begin
        assert structure.later_edges.size == pieces.kept.size


def test_the_analysis_takes_no_more_than_announced():
    graph = scale_free(2000)
    pieces, monitor = split_into_pieces(graph), Monitor()
    ordering = order_pieces(pieces, monitor, degree_limit=6)
    held = sum(getattr(pieces, field.name).nbytes for field in fields(pieces))
    held += sum(getattr(ordering, field.name).nbytes for field in fields(ordering))
    assert held < pattern_bytes(graph)
    larger = from_networkx(nx.disjoint_union(graph.to_networkx(), graph.to_networkx()))
    assert pattern_bytes(larger) == 2 * pattern_bytes(graph)


def test_an_interrupted_analysis_is_not_used():
    pieces, monitor = split_into_pieces(scale_free(100)), Monitor()
    ordering = order_pieces(pieces, monitor)
    assert (monitor.label, monitor.total, monitor.control[1]) == ("ordering", 100, 100)
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        order_pieces(pieces, monitor)
    with pytest.raises(Cancelled):
        build_structure(pieces, ordering, np.array([0]), np.array([1]), monitor)
