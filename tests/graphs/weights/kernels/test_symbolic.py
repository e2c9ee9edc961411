import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs.weights.kernels.symbolic import later_neighbors
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.monitor import Monitor
from support.elimination import column_pairs, in_positions, lists_of, structure_of, symbolic_fill, tail_of
from support.graphs import graphs
from support.resistance import from_networkx, scale_free


@given(graphs(max_vertices=12), st.randoms(use_true_random=False))
def test_each_edge_is_listed_at_its_earlier_end(graph, random):
    order = np.array(random.sample(range(graph.n_vertices), graph.n_vertices), np.int32)
    pointers, rows, edges = later_neighbors(order, *lists_of(graph), graph.n_vertices)
    listed = {(j, rows[t], edges[t]) for j in range(order.size) for t in range(pointers[j], pointers[j + 1])}
    expected = {(min(pair), max(pair), e) for e, pair in enumerate(in_positions(graph, order).tolist())}
    assert listed == expected
    assert rows.size == graph.n_edges


@given(graphs(max_vertices=12), st.randoms(use_true_random=False), st.integers(0, 12))
def test_tails_are_the_fill_for_any_order(graph, random, n_eliminated):
    n_eliminated = min(n_eliminated, graph.n_vertices)
    order = np.array(random.sample(range(graph.n_vertices), graph.n_vertices), np.int32)
    structure = structure_of(graph, order, n_eliminated)
    fill = symbolic_fill(graph.n_vertices, in_positions(graph, order), n_eliminated)
    assert [tail_of(structure, s) for s in range(n_eliminated)] == [sorted(later) for later in fill]
    assert np.array_equal(np.diff(structure.columns)[:n_eliminated], [len(later) for later in fill])
    assert np.all(structure.columns[n_eliminated:] == sum(map(len, fill)))


@pytest.mark.parametrize(
    "graph",
    [
        from_networkx(nx.grid_2d_graph(12, 12)),
        scale_free(300),
        from_networkx(nx.wheel_graph(500)),
        from_networkx(nx.complete_graph(20)),
        from_networkx(nx.disjoint_union(nx.circular_ladder_graph(30), nx.grid_2d_graph(5, 9))),
    ],
    ids=["grid", "scale-free", "wheel", "complete", "two pieces"],
)
def test_supernodes_hold_the_fill_of_all_their_vertices(graph):
    pieces = split_into_pieces(graph)
    monitor = Monitor()
    ordering = order_pieces(pieces, monitor)
    whole = np.arange(pieces.starts.size - 1)
    n_pivots = np.diff(ordering.piece_pivots)
    structure = build_structure(pieces, ordering, whole, n_pivots, monitor)
    pairs = np.array(
        [
            (j, i)
            for j in range(pieces.n_vertices)
            for i in structure.later_rows[slice(*structure.later_pointers[j : j + 2])]
        ]
    )
    fill = symbolic_fill(pieces.n_vertices, pairs, structure.first)
    expected = {(j, i) for j, later in enumerate(fill) for i in later}
    columns = column_pairs(structure)
    assert len(columns) == structure.columns[-1] == len(set(columns))
    assert expected <= set(columns)
    for s, end in enumerate(structure.ends):  # the last vertex of a supernode is joined to all of its tail
        assert set(tail_of(structure, s)) == fill[end - 1]
    if graph.degrees.max() < 200:  # without hubs, so are all of them
        assert set(columns) == expected
