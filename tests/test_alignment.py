import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.alignment import align, graph_has_ids
from corrvae.graphs import CorrelationGraph
from support.graphs import graphs


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


NAMED = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])


@given(graphs(ids=True), st.randoms())
def test_edges_join_the_same_ids_whatever_the_order_of_the_rows(graph, random):
    order = random.sample(range(graph.n_vertices), graph.n_vertices)
    rows = align(graph.n_vertices, graph.ids[order] if graph_has_ids(graph) else None, graph)
    joined = {frozenset(pair) for pair in rows.graph.id_pairs.tolist()}
    assert joined == {frozenset(pair) for pair in graph.id_pairs.tolist()}
    assert rows.graph.ids.tolist() == rows.ids.tolist()


def test_without_ids_rows_count():
    assert align(3, None, None).ids.tolist() == [0, 1, 2]
    assert align(2, objects(["x", "y"]), None).ids.tolist() == ["x", "y"]


def test_ids_of_the_graph_are_kept():
    assert align(3, None, NAMED).ids.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("ids", [objects(["x", "y", "z"]), np.array([7, 5, 3]), np.array([1, 2, 3])])
def test_a_graph_that_only_counts_takes_the_ids_of_the_rows(ids):
    rows = align(3, ids, CorrelationGraph.from_edges([(0, 1)], n_vertices=3))
    assert rows.ids.tolist() == rows.graph.ids.tolist() == ids.tolist()
    assert rows.graph.edges.tolist() == [[0, 1]]


def test_rows_that_only_count_take_the_ids_of_the_graph():
    rows = align(3, np.arange(3), NAMED)
    assert rows.ids.tolist() == ["a", "b", "c"]
    assert rows.graph is NAMED


def test_the_same_numbers_in_another_order_are_matched():
    rows = align(3, np.array([2, 0, 1]), CorrelationGraph.from_edges([(0, 1)], n_vertices=3))
    assert rows.ids.tolist() == rows.graph.ids.tolist() == [2, 0, 1]
    assert rows.graph.id_pairs.tolist() == [[0, 1]]
    assert rows.graph.edges.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("ids", "graph"),
    [(objects(["x", "y", "z"]), CorrelationGraph.from_edges([(5, 7), (7, 9)])), (np.array([7, 5, 3]), NAMED)],
)
def test_ids_of_another_kind_are_refused(ids, graph):
    with pytest.raises(ValueError, match="cannot be matched by id"):
        align(3, ids, graph)


def test_rows_that_are_no_vertices_are_named():
    with pytest.raises(ValueError, match="position 1: id 'q' is not among the 3 vertices"):
        align(3, objects(["a", "q", "c"]), NAMED)


def test_ids_must_be_distinct():
    with pytest.raises(ValueError, match="'a' twice"):
        align(3, objects(["a", "a", "c"]), None)


def test_a_graph_of_another_size_is_refused():
    with pytest.raises(ValueError, match="3 vertices, but X has 4 rows"):
        align(4, None, NAMED)


@pytest.mark.parametrize("wrong", [np.eye(3), [(0, 1)], NAMED.to_scipy(), "graph.csv"])
def test_only_a_correlation_graph_will_do(wrong):
    with pytest.raises(TypeError, match=r"CorrelationGraph\.from_edges"):
        align(3, None, wrong)


def test_the_cure_for_another_number_of_rows_is_the_one_that_helps():
    graph = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "cem")])
    with pytest.raises(ValueError, match=r"3 vertices, but X has 2 rows.*graph\.subgraph\(ids\)"):
        align(2, None, graph)
    with pytest.raises(ValueError, match=r"3 vertices, but X has 4 rows.*with vertices= or n_vertices="):
        align(4, None, graph)
    assert align(2, None, graph.subgraph(["ann", "cem"])).graph.n_vertices == 2
    assert align(2, None, graph[[0, 1]]).graph.n_edges == 1
