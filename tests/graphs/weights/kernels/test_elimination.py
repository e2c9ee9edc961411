import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels.elimination import (
    Structure,
    back_substitute,
    dense_core,
    eliminate,
    read_resistances,
    sparse_core,
)
from corrvae.graphs.weights.pattern import build_structure, later_neighbors, order_pieces, split_into_pieces
from corrvae.graphs.weights.progress import Monitor
from support.elimination import (
    column_pairs,
    conductance_matrix,
    exact_resistances,
    grounded_inverse,
    in_positions,
    lists_of,
    matrix_resistances,
    no_control,
    star_mesh,
    structure_of,
    symbolic_fill,
    tail_of,
)
from support.graphs import graphs
from support.resistance import conductances_of, from_networkx, scale_free

NO_MATRIX = np.zeros((0, 0))
NO_EMBEDDING = np.zeros((0, 0), np.float32)


@st.composite
def eliminations(draw, max_vertices=9, connected=False):
    """A graph, an order of its vertices, and how many of them to eliminate."""
    graph = draw(graphs(max_vertices=max_vertices))
    assume(not connected or (graph.n_connected == 1 and graph.n_vertices > 1))
    order = np.array(draw(st.permutations(range(graph.n_vertices))), np.int32)
    return graph, order, draw(st.integers(0, graph.n_vertices))


def in_supernodes(graph: CorrelationGraph, share: float) -> tuple[Structure, np.ndarray, np.ndarray]:
    """A bridgeless connected graph in minimum-degree order, its conductances by position, and those by edge."""
    pieces = split_into_pieces(graph)
    assert pieces.n_vertices == graph.n_vertices
    assert pieces.starts.size == 2
    ordering = order_pieces(pieces, Monitor())
    n_pivots = np.array([int(share * ordering.pivot_sizes.size)])
    structure = build_structure(pieces, ordering, np.array([0]), n_pivots, Monitor())
    matrix = np.zeros((graph.n_vertices, graph.n_vertices))
    position = np.argsort(ordering.order)
    for v in range(graph.n_vertices):
        for t in range(pieces.pointers[v], pieces.pointers[v + 1]):
            matrix[position[v], position[pieces.neighbors[t]]] = conductances_of(graph)[pieces.edge_of[t]]
    return structure, matrix, conductances_of(graph)


def in_columns(structure: Structure, matrix: np.ndarray) -> np.ndarray:
    return np.array([matrix[pair] for pair in column_pairs(structure)])


@given(eliminations())
def test_columns_are_conductances_of_the_star_mesh(elimination):
    graph, order, n_eliminated = elimination
    structure = structure_of(graph, order, n_eliminated)
    expected = star_mesh(conductance_matrix(graph, order), n_eliminated)
    control = no_control()
    found = eliminate(structure, conductances_of(graph), control)
    assert control.tolist() == [0, n_eliminated]
    assert np.allclose(found.values, in_columns(structure, expected), rtol=1e-12, atol=0.0)
    sums = np.array([expected[v, v + 1 :].sum() for v in range(n_eliminated)])
    inverse = np.divide(1.0, sums, out=np.zeros(n_eliminated), where=sums > 0.0)
    assert np.allclose(found.inverse_sums[:n_eliminated], inverse, rtol=1e-12, atol=0.0)

    left = expected[n_eliminated:, n_eliminated:]
    fresh = eliminate(structure, conductances_of(graph), no_control())
    assert np.allclose(dense_core(structure, found, conductances_of(graph), no_control()), left, rtol=1e-12, atol=0.0)
    tails, heads, values = sparse_core(structure, fresh, conductances_of(graph), no_control())
    assert np.all(tails < heads)
    again = np.zeros_like(left)
    again[tails, heads] = again[heads, tails] = values
    assert np.allclose(again, left, rtol=1e-12, atol=0.0)
    codes = tails.astype(np.int64) * left.shape[0] + heads
    assert np.all(np.diff(codes) > 0)  # sorted: edges are looked up in it


@given(eliminations(max_vertices=7, connected=True))
def test_columns_become_resistances_in_back_substitution(elimination):
    graph, order, n_eliminated = elimination
    structure = structure_of(graph, order, n_eliminated)
    truth = exact_resistances(conductance_matrix(graph, order))
    found = eliminate(structure, conductances_of(graph), no_control())
    core = truth[n_eliminated:, n_eliminated:].copy()
    back_substitute(structure, found, core, NO_EMBEDDING, no_control())
    assert np.allclose(found.values, in_columns(structure, truth), rtol=1e-9, atol=0.0)
    across = np.zeros(graph.n_edges)
    read_resistances(structure, found.values, core, across)
    assert np.allclose(across, truth[tuple(in_positions(graph, order).T)], rtol=1e-9, atol=0.0)


BRIDGELESS = {
    "grid": nx.grid_2d_graph(9, 10),
    "scale-free": nx.barabasi_albert_graph(150, 3, seed=5),
    "complete": nx.complete_graph(30),
    "wheel": nx.wheel_graph(300),  # with a hub
    "caves": nx.connected_caveman_graph(8, 6),  # with supernodes of several vertices
}


@pytest.mark.parametrize("graph", BRIDGELESS.values(), ids=BRIDGELESS)
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_supernodes_change_nothing(graph, share):
    structure, matrix, conductances = in_supernodes(from_networkx(graph, seed=4), share)
    expected = star_mesh(matrix, structure.first)
    found = eliminate(structure, conductances, no_control())
    assert np.allclose(found.values, in_columns(structure, expected), rtol=1e-11, atol=1e-15)
    core = dense_core(structure, found, conductances, no_control())
    left = expected[structure.first :, structure.first :]
    assert np.allclose(core, left, rtol=1e-11, atol=0.0)
    sparse = sparse_core(structure, eliminate(structure, conductances, no_control()), conductances, no_control())
    assert np.allclose(sparse[2], left[sparse[0], sparse[1]], rtol=1e-11, atol=0.0)
    assert np.isclose(2 * sparse[2].sum(), left.sum())

    truth = matrix_resistances(matrix)
    control = no_control()
    back_substitute(structure, found, truth[structure.first :, structure.first :].copy(), NO_EMBEDDING, control)
    assert control.tolist() == [0, structure.first]
    assert np.allclose(found.values, in_columns(structure, truth), rtol=1e-8, atol=0.0)


def test_an_embedding_stands_for_the_core():
    structure, matrix, conductances = in_supernodes(scale_free(120, 2), 0.6)
    truth = matrix_resistances(matrix)
    first = structure.first
    # resistances are squared distances of the rows of a root of the grounded inverse
    points = np.zeros((len(matrix), len(matrix) - 1))
    points[1:] = np.linalg.cholesky(grounded_inverse(matrix)[1:, 1:])
    points = points[first:].astype(np.float32)
    found = eliminate(structure, conductances, no_control())
    back_substitute(structure, found, NO_MATRIX, points, no_control())
    assert np.allclose(found.values, in_columns(structure, truth), rtol=1e-5, atol=0.0)
    across = np.full(conductances.size, -1.0)
    read_resistances(structure, found.values, NO_MATRIX, across)
    inside = structure.later_edges[structure.later_pointers[first] :]
    assert inside.size > 0
    assert np.all(across[inside] == -1.0)
    assert np.count_nonzero(across == -1.0) == inside.size


def test_every_kernel_stops_when_asked():
    structure, matrix, conductances = in_supernodes(scale_free(120), 0.5)
    stopped = np.array([1, 0])
    assert not eliminate(structure, conductances, stopped).values.any()
    found = eliminate(structure, conductances, no_control())
    before = found.values.copy()
    assert not dense_core(structure, found, conductances, stopped).any()
    assert sparse_core(structure, found, conductances, stopped)[0].size == 0
    core = matrix_resistances(matrix)[structure.first :, structure.first :].copy()
    back_substitute(structure, found, core, NO_EMBEDDING, stopped)
    assert np.array_equal(found.values, before)
    assert stopped.tolist() == [1, 0]


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
