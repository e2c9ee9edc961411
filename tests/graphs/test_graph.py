import copy
import pickle
import subprocess
import sys

import networkx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.graphs import CorrelationGraph, graph_features
from support.graphs import graphs


def edge_set(graph):
    """Return the edges as unordered pairs of ids, with their conductances."""
    values = [None] * graph.n_edges if graph.conductances is None else graph.conductances.tolist()
    return {frozenset(pair): value for pair, value in zip(graph.id_pairs.tolist(), values, strict=True)}


@given(graphs(ids=True))
def test_every_attribute_agrees_with_networkx(graph):
    reference = networkx.Graph()
    reference.add_nodes_from(graph.ids.tolist())
    reference.add_edges_from(graph.id_pairs.tolist())
    ids = graph.ids.tolist()
    assert (graph.n_vertices, graph.n_edges) == (len(reference), reference.size())
    assert graph.shape == (len(graph),) == (graph.n_vertices,)
    assert graph.degrees.tolist() == [reference.degree[value] for value in ids]
    assert graph.n_connected == networkx.number_connected_components(reference)
    for component in networkx.connected_components(reference):
        assert len({graph.components[ids.index(value)] for value in component}) == 1
    assert len(set(graph.components.tolist())) == graph.n_connected
    firsts = [graph.components.tolist().index(label) for label in range(graph.n_connected)]
    assert firsts == sorted(firsts)
    for value in ids:
        neighbors = graph.neighbors(value).tolist()
        assert set(neighbors) == set(reference[value])
        assert neighbors == sorted(neighbors, key=ids.index)
    assert graph.index_of(ids[::-1]).tolist() == list(range(len(ids)))[::-1]


@given(graphs(ids=True))
def test_edges_are_canonical_and_arrays_read_only(graph):
    edges = [tuple(edge) for edge in graph.edges.tolist()]
    assert edges == sorted(set(edges))
    assert all(0 <= i < j < graph.n_vertices for i, j in edges)
    assert graph.edges.dtype == np.int64
    arrays = [graph.edges, graph.ids, graph.degrees, graph.components]
    arrays += [] if graph.conductances is None else [graph.conductances]
    assert not any(array.flags.writeable for array in arrays)
    rebuilt = CorrelationGraph.from_edges(graph.id_pairs, conductances=graph.conductances, vertices=graph.ids)
    assert rebuilt == graph


@given(graphs(ids=True), st.data())
def test_square_brackets_and_subgraph_give_the_induced_subgraph_in_order(graph, data):
    order = data.draw(st.permutations(range(graph.n_vertices)))
    chosen = order[: data.draw(st.integers(0, graph.n_vertices))]
    part = graph[np.array(chosen, dtype=np.int64)]
    kept = [graph.ids.tolist()[index] for index in chosen]
    assert part.ids.tolist() == kept
    assert edge_set(part) == {edge: value for edge, value in edge_set(graph).items() if edge <= set(kept)}
    codes = [tuple(edge) for edge in part.edges.tolist()]
    assert codes == sorted(codes)
    assert all(i < j for i, j in codes)
    assert graph.subgraph(kept) == part == graph[chosen]


@given(graphs(ids=True), st.data())
def test_slices_and_masks_are_indices(graph, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(graph), max_size=len(graph)))
    assert graph[mask] == graph[np.array(mask, dtype=bool)] == graph[np.flatnonzero(mask)]
    cut = data.draw(st.slices(len(graph)))
    assert graph[cut] == graph[list(range(len(graph)))[cut]]
    assert graph[:] == graph


@given(graphs(ids=True), st.data())
def test_without_removes_exactly_those_edges_and_keeps_the_vertices(graph, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=graph.n_edges, max_size=graph.n_edges)), dtype=bool)
    flipped = graph.id_pairs[mask][:, ::-1]
    rest = graph.without(flipped)
    assert rest.ids.tolist() == graph.ids.tolist()
    removed = {frozenset(pair) for pair in flipped.tolist()}
    assert edge_set(rest) == {edge: value for edge, value in edge_set(graph).items() if edge not in removed}
    assert graph.without([]) == graph


@given(graphs(ids=True))
def test_copies_and_pickles_are_equal_and_read_only(graph):
    for other in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert other == graph
        assert not other.edges.flags.writeable
        assert not other.ids.flags.writeable


def test_graphs_that_differ_are_unequal():
    graph = CorrelationGraph.from_edges([(0, 1), (1, 2)], conductances=[1.0, 2.0])
    others = [
        CorrelationGraph.from_edges([(0, 1), (1, 2)]),
        CorrelationGraph.from_edges([(0, 1), (1, 2)], conductances=[1.0, 3.0]),
        CorrelationGraph.from_edges([(0, 1), (0, 2)], conductances=[1.0, 2.0]),
        CorrelationGraph.from_edges([(0, 1), (1, 2)], conductances=[1.0, 2.0], n_vertices=4),
        CorrelationGraph.from_edges([(0, 1), (1, 2)], conductances=[1.0, 2.0], vertices=[0, 2, 1]),
        CorrelationGraph.from_edges([("0", "1"), ("1", "2")], conductances=[1.0, 2.0]),
        "a graph",
    ]
    assert all(graph != other for other in others)
    assert graph == CorrelationGraph.from_edges([(2, 1), (1, 0)], conductances=[2.0, 1.0])
    with pytest.raises(TypeError, match="unhashable"):
        hash(graph)


def test_a_graph_is_immutable():
    graph = CorrelationGraph.from_edges([(0, 1)])
    for name in ("edges", "degrees", "_edges", "anything"):
        with pytest.raises(AttributeError, match="is immutable"):
            setattr(graph, name, None)
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[0, 0] = 5


def test_small_and_empty_graphs_work():
    empty = CorrelationGraph.from_edges([])
    assert (empty.n_vertices, empty.n_edges, empty.n_connected, empty.shape) == (0, 0, 0, (0,))
    assert empty.components.shape == empty.degrees.shape == (0,)
    assert empty.to_scipy().shape == (0, 0)
    assert empty[[]] == empty
    single = CorrelationGraph.from_edges([], vertices=["alone"])
    assert (single.n_connected, single.degrees.tolist(), single.neighbors("alone").tolist()) == (1, [0], [])
    assert repr(single) == "CorrelationGraph(1 vertex, 0 edges)"
    loose = CorrelationGraph.from_edges([], n_vertices=3)
    assert loose.components.tolist() == [0, 1, 2]
    assert loose.edges.shape == (0, 2)


def test_repr_is_short():
    graph = CorrelationGraph.from_edges([(0, 1)], conductances=[2.0], n_vertices=1200)
    assert repr(graph) == "CorrelationGraph(1,200 vertices, 1 edge, conductances)"


@pytest.mark.parametrize(
    ("key", "kind", "sentence"),
    [
        ([0, 4], IndexError, "index 4 is out of bounds"),
        ([0.0, 1.0], IndexError, "integer"),
        (["a"], IndexError, "integers"),
        ([0, 1, 0], ValueError, "vertex index 0 occurs 2 times"),
        ([True, False], IndexError, "boolean index did not match"),
        ([[0, 1]], TypeError, "one-dimensional"),
        (3, TypeError, r"graph\[\[3\]\]"),
    ],
)
def test_wrong_indices_raise(key, kind, sentence):
    graph = CorrelationGraph.from_edges([("a", "b")], vertices=["a", "b", "c", "d"])
    with pytest.raises(kind, match=sentence):
        graph[key]


def test_unknown_ids_raise_with_their_place():
    graph = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match="position 1: id 'z' is not among the 3 vertices"):
        graph.index_of(["a", "z"])
    with pytest.raises(ValueError, match="id 'z' is not among the 3 vertices"):
        graph.neighbors("z")
    with pytest.raises(ValueError, match=r"id 0 is not among .* like 'a'"):
        graph.subgraph([0])
    with pytest.raises(TypeError, match="not the one str 'abc'"):
        graph.index_of("abc")


def test_removing_what_is_not_there_raises_with_its_place():
    graph = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match=r"edge 1: \('a', 'c'\) is not an edge of the graph"):
        graph.without([("b", "a"), ("a", "c")])
    with pytest.raises(ValueError, match="edge 0: id 'z' is not among"):
        graph.without([("a", "z")])
    with pytest.raises(ValueError, match=r"\('b', 'b'\) is not an edge"):
        graph.without([("b", "b")])


def test_scikit_learn_slices_a_graph_with_the_rows():
    pytest.importorskip("sklearn")
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.model_selection import KFold, cross_validate, train_test_split
    from sklearn.utils import _safe_indexing
    from sklearn.utils.validation import _num_samples, indexable

    graph = CorrelationGraph.from_edges([(i, (i + step) % 20) for i in range(20) for step in (1, 7)], n_vertices=20)
    X = np.arange(20.0)[:, None]
    assert _num_samples(graph) == 20
    assert indexable(X, graph)[1] is graph
    for train, _ in KFold(4, shuffle=True, random_state=0).split(X):
        assert _safe_indexing(graph, train) == graph[train] == graph.subgraph(train)
    mask = np.arange(20) % 3 == 0
    assert _safe_indexing(graph, mask) == graph[mask]
    assert _safe_indexing(graph, list(range(3, 9))) == _safe_indexing(graph, slice(3, 9)) == graph[3:9]
    train_rows, test_rows, train_graph, test_graph = train_test_split(X, graph, random_state=1)
    assert train_graph.ids.tolist() == train_rows.ravel().tolist()
    assert test_graph.ids.tolist() == test_rows.ravel().tolist()

    class Checks(RegressorMixin, BaseEstimator):
        def fit(self, X, y=None, graph=None):
            assert graph.ids.tolist() == X.ravel().tolist()
            self.fitted_ = True
            return self

        def score(self, X, y=None):
            return 0.0

    cross_validate(Checks(), X, cv=3, params={"graph": graph}, error_score="raise")


def test_the_room_and_the_weights_of_small_graphs_load_nothing_heavy():
    heavy = ["torch", "numba", "sklearn", "networkx", "pandas", "pyarrow", "rich", "polars"]
    code = f"""
import sys
from corrvae.graphs import CorrelationGraph, spanning_weights
assert spanning_weights(CorrelationGraph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])).weights[3] == 1.0
print([name for name in {heavy} if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@given(graphs(ids=True))
def test_a_graph_contains_its_ids_and_cannot_be_iterated(graph):
    assert all(value in graph for value in graph.ids.tolist())
    assert "no such vertex" not in graph
    assert None not in graph
    with pytest.raises(TypeError, match="one-dimensional"):
        list(graph)
    with pytest.raises(TypeError, match="unhashable"):
        _ = [0] in graph


# ---- graph_features


@given(graphs(max_vertices=10, ids=True), st.integers(0, 5), st.booleans(), st.integers(0, 2**16))
def test_features_stand_beside_the_adjacency(graph, n_features, dense, seed):
    X = np.random.default_rng(seed).poisson(0.5, (graph.n_vertices, n_features)).astype(np.float32)
    found = graph_features(X if dense else sparse.csr_array(X), graph)
    expected = np.zeros((graph.n_vertices, n_features + graph.n_vertices))
    expected[:, :n_features] = X
    for first, second in graph.edges:
        expected[first, n_features + second] = expected[second, n_features + first] = 1.0
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == np.float32
    assert np.array_equal(found.toarray(), expected)


def test_neither_the_features_nor_the_graph_are_changed():
    graph = CorrelationGraph.from_edges([(0, 1)], conductances=[3.0])
    X = sparse.csr_array(np.eye(2, dtype=np.float32))
    graph_features(X, graph).data[:] = 7.0
    assert X.toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert graph.to_scipy().toarray().tolist() == [[0.0, 3.0], [3.0, 0.0]]


def test_what_does_not_fit_raises():
    graph = CorrelationGraph.from_edges([(0, 1)])
    with pytest.raises(ValueError, match="the graph has 2 vertices, but X has 3 rows"):
        graph_features(np.eye(3), graph)


def test_a_frame_in_another_order_raises():
    graph = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["c", "b", "a"])
    with pytest.raises(ValueError, match=r"another order than the vertices of the graph; pass graph\.subgraph"):
        graph_features(frame, graph)
    found = graph_features(frame, graph.subgraph(frame.index))
    assert found.toarray().tolist() == [[1, 0, 1, 0], [2, 1, 0, 1], [3, 0, 1, 0]]
    assert graph_features(frame.reset_index(drop=True), graph).shape == (3, 4)
