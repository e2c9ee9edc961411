import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels.elimination import (
    back_substitute,
    dense_core,
    eliminate,
    read_resistances,
    sparse_core,
)
from corrvae.graphs.weights.kernels.symbolic import Structure
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.monitor import Monitor
from support.elimination import (
    column_pairs,
    conductance_matrix,
    exact_resistances,
    in_positions,
    matrix_resistances,
    no_control,
    star_mesh,
    structure_of,
)
from support.graphs import graphs
from support.resistance import conductances_of, from_networkx, scale_free

NO_MATRIX = np.zeros((0, 0))
NO_EMBEDDING = np.zeros((0, 0), np.float32)


@st.composite
def eliminations(draw, max_vertices=9, connected=False):
    """A graph, an order of its vertices, and how many of them to eliminate."""
    graph = draw(graphs(max_vertices=max_vertices))
    assume(not connected or (graph.n_components == 1 and graph.n_vertices > 1))
    order = np.array(draw(st.permutations(range(graph.n_vertices))), np.int32)
    return graph, order, draw(st.integers(0, graph.n_vertices))


def in_supernodes(graph: CorrelationGraph, share: float) -> tuple[Structure, np.ndarray, np.ndarray]:
    """A bridgeless connected graph in minimum-degree order, its conductances by position, and those by edge."""
    pieces = split_into_pieces(graph)
    assert pieces.n_vertices == graph.n_vertices
    assert pieces.starts.size == 2
    ordering = order_pieces(pieces, Monitor())
    n_pivots = np.array([int(share * ordering.pivot_starts.size)])
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
def test_columns_become_resistances_on_the_way_back(elimination):
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
    # resistances are squared distances of the columns of the root of the pseudo-inverse
    values, vectors = np.linalg.eigh(np.diag(matrix.sum(axis=1)) - matrix)
    points = (vectors[:, 1:] / np.sqrt(values[1:]))[first:].astype(np.float32)
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
