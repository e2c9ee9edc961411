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


@pytest.mark.parametrize(
    ("row_ids", "graph", "ids"),
    [
        (objects(["x", "y", "z"]), CorrelationGraph.from_edges([(0, 1)], n_vertices=3), ["x", "y", "z"]),
        (objects(["x", "y", "z"]), CorrelationGraph.from_edges([(5, 7), (7, 9)]), ["x", "y", "z"]),
        (np.array([7, 5, 3]), NAMED, ["a", "b", "c"]),
    ],
)
def test_ids_of_another_kind_are_matched_by_place(row_ids, graph, ids):
    rows = align(3, row_ids, graph)
    assert rows.ids.tolist() == ids
    assert rows.graph.edges.tolist() == graph.edges.tolist()


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
