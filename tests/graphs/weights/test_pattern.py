import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph, SpanningPlan
from corrvae.graphs.weights.kernels.adjacency import Pieces
from corrvae.graphs.weights.kernels.ordering import LARGEST_DEGREE, choose_cuts, cut_at_degree
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.graphs.weights.progress import Cancelled, Monitor
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
    assert ordering.pivot_sizes.sum() < pieces.n_vertices
    for n_eliminated in (n_pivots, n_pivots - 1, np.zeros(1, np.int64)):
        structure = build_structure(pieces, ordering, np.array([0]), n_eliminated, monitor)
        assert structure.first == ordering.pivot_sizes[: int(n_eliminated[0])].sum()
        assert structure.later_edges.size == pieces.kept.size


def test_the_analysis_takes_no_more_than_announced():
    graph = scale_free(2000)
    pieces, monitor = split_into_pieces(graph), Monitor()
    ordering = order_pieces(pieces, monitor, degree_limit=6)
    assert sum(array.nbytes for array in (*pieces, *ordering)) < SpanningPlan(graph)._pattern_bytes


def test_an_interrupted_analysis_is_not_used():
    pieces, monitor = split_into_pieces(scale_free(100)), Monitor()
    ordering = order_pieces(pieces, monitor)
    assert (monitor.label, monitor.total, monitor.control[1]) == ("ordering", 100, 100)
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        order_pieces(pieces, monitor)
    with pytest.raises(Cancelled):
        build_structure(pieces, ordering, np.array([0]), np.array([1]), monitor)


@pytest.fixture(scope="module")
def analysed():
    graph = nx.disjoint_union_all(
        [nx.barabasi_albert_graph(700, 4, seed=1), nx.grid_2d_graph(20, 20), nx.complete_graph(90)]
    )
    pieces = split_into_pieces(from_networkx(graph))
    return pieces, order_pieces(pieces, Monitor())


def cut(analysed, budget):
    pieces, ordering = analysed
    return choose_cuts(pieces.starts, ordering, float(budget))


def test_bytes_are_those_of_columns_front_and_core(analysed):
    cuts = cut(analysed, np.inf)
    assert cuts.core_sizes[2] == 90
    assert 64 <= cuts.core_sizes[0] < 700
    for piece in range(3):
        structure = build_structure(*analysed, np.array([piece]), cuts.n_eliminated[[piece]], Monitor())
        assert structure.core_size == cuts.core_sizes[piece]
        fronts = structure.ends - structure.starts + np.diff(structure.tail_pointers)
        room = 8 * structure.columns[-1] + 4 * structure.tails.size + 8 * max(fronts, default=0) ** 2
        assert cuts.bytes[piece] == room + 8 * cuts.core_sizes[piece] ** 2


def test_a_tight_budget_is_kept_and_costs_time(analysed):
    free = cut(analysed, np.inf)
    least = cut(analysed, 0.0)
    budget = 0.5 * (free.bytes[0] + least.bytes[0])
    tight = cut(analysed, budget)
    assert tight.bytes[0] <= budget
    assert tight.seconds[0] > free.seconds[0]
    assert tight.n_eliminated[0] != free.n_eliminated[0]


def test_what_cannot_fit_is_cut_where_it_needs_least(analysed):
    least = cut(analysed, 0.0)
    for budget in (1e5, 5e5, 1e6, np.inf):
        assert np.all(least.bytes <= cut(analysed, budget).bytes)


def test_a_sketch_eliminates_only_vertices_of_few_neighbours(analysed):
    cuts = cut_at_degree(analysed[0].starts, analysed[1], LARGEST_DEGREE)
    assert cuts.n_eliminated[2] == 0
    assert cuts.core_sizes[2] == 90
    structure = build_structure(*analysed, np.arange(3), cuts.n_eliminated, Monitor())
    lengths = np.diff(structure.columns)[: structure.first]
    assert lengths.max() <= LARGEST_DEGREE
    assert cuts.core_sizes.sum() == analysed[0].n_vertices - structure.first
