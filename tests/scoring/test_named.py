import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.named import NamedPoints, exclude_neighbors, exclude_same
from support.graphs import graphs
from support.literal_scores import random_points


def test_points_keep_their_names():
    named = NamedPoints(random_points(3, 2, 0), np.array(["a", "b", "c"], dtype=object), True)
    some = named.take(np.array([2, 0]))
    assert some.ids.tolist() == ["c", "a"]
    np.testing.assert_array_equal(some.points.mean, named.points.mean[[2, 0]])


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9), unique=True))
def test_the_same_ids_are_excluded(queries, candidates):
    found = exclude_same(np.array(queries, np.int64), np.array(candidates, np.int64))
    expected = [(q, candidates.index(value)) for q, value in enumerate(queries) if value in candidates]
    assert list(zip(found.queries, found.candidates, strict=True)) == expected


def test_candidates_of_one_id_are_refused():
    with pytest.raises(ValueError, match="twice"):
        exclude_same(np.array([1]), np.array([5, 5]))


@given(graphs(min_vertices=2), st.data())
def test_neighbours_in_the_graph_are_excluded(graph, data):
    everyone = [*graph.ids.tolist(), 1000, 1001]
    queries = data.draw(st.lists(st.sampled_from(everyone)))
    candidates = data.draw(st.lists(st.sampled_from(everyone), unique=True))
    found = exclude_neighbors(np.array(queries, np.int64), np.array(candidates, np.int64), graph, graph.ids)
    expected = [
        (q, candidates.index(neighbour))
        for q, vertex in enumerate(queries)
        if vertex in graph
        for neighbour in graph.neighbors(vertex).tolist()
        if neighbour in candidates
    ]
    assert list(zip(found.queries, found.candidates, strict=True)) == sorted(expected)
