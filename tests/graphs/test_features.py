import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.graphs import CorrelationGraph, graph_features
from support.graphs import graphs


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
    with pytest.raises(ValueError, match="two dimensions"):
        graph_features(np.ones(2), graph)


def test_a_frame_in_another_order_raises():
    graph = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["c", "b", "a"])
    with pytest.raises(ValueError, match=r"another order than the vertices of the graph; pass graph\.subgraph"):
        graph_features(frame, graph)
    found = graph_features(frame, graph.subgraph(frame.index))
    assert found.toarray().tolist() == [[1, 0, 1, 0], [2, 1, 0, 1], [3, 0, 1, 0]]
    assert graph_features(frame.reset_index(drop=True), graph).shape == (3, 4)
