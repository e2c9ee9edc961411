import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels import wilson
from corrvae.graphs.weights.kernels.adjacency import Pieces
from corrvae.graphs.weights.pattern import split_into_pieces
from corrvae.graphs.weights.sample import neighbor_tables, walk_order
from support.elimination import no_control
from support.forests import enumerate_forests
from support.graphs import graphs
from support.resistance import conductances_of, forest_weights, from_networkx, scale_free


def draw(pieces: Pieces, conductances: np.ndarray | None, key: int, control=None):
    """One forest: the steps walked, each vertex's entry towards its root, and the vertices, parents first."""
    _, threshold, alias = neighbor_tables(pieces, conductances)
    n = pieces.n_vertices
    order = walk_order(pieces)
    parent_entry, topological, stamp = np.empty(n, np.int64), np.empty(n, np.int32), np.full(n, -1)
    state = np.array([key], np.uint64)
    control = no_control() if control is None else control
    steps = wilson.sample_forest(pieces, threshold, alias, order, state, parent_entry, topological, stamp, 0, control)
    return steps, parent_entry, topological


def conditional(pieces: Pieces, values: np.ndarray, parent_entry: np.ndarray, topological: np.ndarray) -> np.ndarray:
    out = np.zeros(pieces.is_bridge.size)
    scratch = np.empty((6, pieces.n_vertices + 1), np.int32)
    wilson.conditional_probabilities(pieces, values, parent_entry, topological, scratch, out)
    return out


def rooted(pieces: Pieces, forest: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A listed forest as `sample_forest` would return it, with roots anywhere."""
    entries = {
        (v, int(pieces.neighbors[t])): t
        for v in range(pieces.n_vertices)
        for t in range(pieces.pointers[v], pieces.pointers[v + 1])
        if forest[pieces.edge_of[t]]
    }
    tree = nx.Graph(list(entries))
    parent_entry = np.full(pieces.n_vertices, -1)
    topological = []
    for piece in nx.connected_components(tree):
        root = int(generator.choice(sorted(piece)))
        topological.append(root)
        for parent, child in nx.bfs_edges(tree, root):
            parent_entry[child] = entries[child, parent]
            topological.append(child)
    return parent_entry, np.array(topological, np.int32)


def naive_conditional(graph: CorrelationGraph, forest: np.ndarray) -> np.ndarray:
    """Take each vertex out of the forest; each remaining tree it touches gets one of its edges, by conductance."""
    conductances = conductances_of(graph)
    out = np.zeros(graph.n_edges)
    for v in range(graph.n_vertices):
        rest = nx.Graph()
        rest.add_nodes_from(set(range(graph.n_vertices)) - {v})
        rest.add_edges_from(edge for edge in graph.edges[forest].tolist() if v not in edge)
        for tree in nx.connected_components(rest):
            mine = [e for e, (i, j) in enumerate(graph.edges) if (i == v and j in tree) or (j == v and i in tree)]
            out[mine] += 0.5 * conductances[mine] / conductances[mine].sum()
    return out


@given(graphs(max_vertices=14))
def test_walks_start_next_to_what_is_there(graph):
    pieces = split_into_pieces(graph)
    order = walk_order(pieces)
    degrees = np.diff(pieces.pointers)
    for first, last in zip(pieces.starts[:-1], pieces.starts[1:], strict=True):
        assert sorted(order[first:last]) == list(range(first, last))
        assert degrees[order[first]] == degrees[first:last].max()
        for q in range(first + 1, last):
            mine = pieces.neighbors[pieces.pointers[order[q]] : pieces.pointers[order[q] + 1]]
            assert set(mine) & set(order[first:q])


@given(graphs(max_vertices=12, weighted=True))
def test_alias_tables_hold_the_distribution(graph):
    pieces = split_into_pieces(graph)
    values, threshold, alias = neighbor_tables(pieces, graph.conductances)
    for v in range(pieces.n_vertices):
        begin, end = pieces.pointers[v], pieces.pointers[v + 1]
        probability = np.zeros(end - begin)
        for t in range(begin, end):
            assert begin <= alias[t] < end
            assert -1e-12 <= threshold[t] <= 1 + 1e-12
            probability[t - begin] += threshold[t]
            probability[alias[t] - begin] += 1 - threshold[t]
        probability /= end - begin
        assert np.allclose(probability, values[begin:end] / values[begin:end].sum(), atol=1e-12)


@given(graphs(max_vertices=12))
def test_a_drawn_forest_spans_every_piece(graph):
    pieces = split_into_pieces(graph)
    steps, parent_entry, topological = draw(pieces, graph.conductances, key=99)
    assert sorted(topological) == list(range(pieces.n_vertices))
    assert steps >= np.count_nonzero(parent_entry >= 0)
    assert np.count_nonzero(parent_entry < 0) == pieces.starts.size - 1  # one root each
    placed = set()
    for v in topological:
        entry = parent_entry[v]
        if entry >= 0:
            assert pieces.pointers[v] <= entry < pieces.pointers[v + 1]
            assert pieces.neighbors[entry] in placed  # parents first, hence no cycle
        placed.add(v)


@given(graphs(max_vertices=5))
@settings(max_examples=40)
def test_conditional_probabilities_average_to_the_weights(graph):
    pieces = split_into_pieces(graph)
    assume(not pieces.is_bridge.any())
    forests = enumerate_forests(graph)
    values = neighbor_tables(pieces, graph.conductances)[0]
    generator = np.random.default_rng(0)
    rows = np.array([conditional(pieces, values, *rooted(pieces, forest, generator)) for forest in forests])
    assert np.allclose(rows.sum(axis=1), graph.n_vertices - graph.n_connected)
    products = np.exp(forests @ np.log(conductances_of(graph)))
    assert np.allclose(products @ rows / products.sum(), forest_weights(graph, forests), atol=1e-12)
    for forest, row in zip(forests[:5], rows, strict=False):
        assert np.allclose(row, naive_conditional(graph, forest), atol=1e-12)


@pytest.mark.parametrize("seed", [None, 6])
def test_a_larger_forest_agrees_with_the_naive_computation(seed):
    graph = scale_free(60, seed)
    pieces = split_into_pieces(graph)
    assert not pieces.is_bridge.any()
    _, parent_entry, topological = draw(pieces, graph.conductances, key=5)
    forest = np.zeros(graph.n_edges, bool)
    forest[pieces.edge_of[parent_entry[parent_entry >= 0]]] = True
    values = neighbor_tables(pieces, graph.conductances)[0]
    assert np.allclose(conditional(pieces, values, parent_entry, topological), naive_conditional(graph, forest))


def test_forests_accumulate_key_by_key():
    graph = from_networkx(nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(6)), seed=1)
    pieces = split_into_pieces(graph)
    values, threshold, alias = neighbor_tables(pieces, graph.conductances)
    order = walk_order(pieces)
    keys = np.array([3, 1 << 40, 77], np.uint64)
    total, control = np.zeros(graph.n_edges), no_control()
    wilson.accumulate_forests(pieces, values, threshold, alias, order, keys, total, control)
    assert control.tolist() == [0, 3]
    expected = sum(conditional(pieces, values, *draw(pieces, graph.conductances, key)[1:]) for key in keys)
    assert np.allclose(total, expected)
    stopped = np.zeros(graph.n_edges)
    wilson.accumulate_forests(pieces, values, threshold, alias, order, keys, stopped, np.array([1, 0]))
    assert not stopped.any()


def test_a_long_walk_stops_when_asked():
    pieces = split_into_pieces(from_networkx(nx.cycle_graph(50_000)))
    assert draw(pieces, None, key=1, control=np.array([1, 0]))[0] == -1
