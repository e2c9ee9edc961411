import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs.ids import VertexIds, id_array

HASHABLES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.text(),
    st.binary(),
    st.tuples(st.integers(), st.text()),
    st.frozensets(st.integers()),
)


@given(st.one_of(st.lists(HASHABLES, unique=True), st.lists(st.integers(-50, 50), unique=True)))
def test_every_id_is_found_where_it_stands_and_stays_what_it_was(vertices):
    ids = VertexIds.from_vertices(vertices)
    assert ids.values.tolist() == vertices
    assert [type(value) for value in ids.values.tolist()] == [type(value) for value in vertices]
    assert ids.find(id_array(vertices, "ids")).tolist() == list(range(len(vertices)))


@given(st.lists(st.integers(-20, 20), unique=True), st.lists(st.integers(-25, 25)))
def test_unknown_integers_are_minus_one(vertices, wanted):
    found = VertexIds.from_vertices(vertices).find(id_array(wanted, "ids"))
    assert found.tolist() == [vertices.index(value) if value in vertices else -1 for value in wanted]


def test_integers_and_strings_that_look_alike_are_different_ids():
    ids = VertexIds.from_vertices(["1", "2"])
    assert ids.find(np.array([1, 2])).tolist() == [-1, -1]
    assert "like '1' (str, not int)" in ids.describe_unknown(1)


@pytest.mark.parametrize("vertices", [[3, 1, 3], ["a", "b", "a"], np.array([3, 1, 3]), [(1, 2), 0, (1, 2)]])
def test_a_repeated_id_raises_with_both_places(vertices):
    with pytest.raises(ValueError, match="twice, at positions 0 and 2"):
        VertexIds.from_vertices(vertices)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan")])
def test_a_missing_id_raises(missing):
    with pytest.raises(ValueError, match="vertices, position 1: the id is missing"):
        VertexIds.from_vertices(["a", missing])


def test_other_wrong_ids_raise():
    with pytest.raises(ValueError, match=r"position 0: id \[1\] is not hashable"):
        VertexIds.from_vertices([[1], [2]])
    with pytest.raises(TypeError, match="not the one str 'abc'"):
        VertexIds.from_vertices("abc")
    with pytest.raises(ValueError, match="one-dimensional"):
        VertexIds.from_vertices(np.zeros((2, 2), dtype=int))


def test_rows_are_recognised_and_take_no_memory():
    for vertices in (range(5), list(range(5)), np.arange(5), np.arange(5.0)):
        assert VertexIds.from_vertices(vertices).are_rows
    assert not VertexIds.from_vertices(range(1, 6)).are_rows
    assert not VertexIds.from_vertices([1, 0]).are_rows
    huge = VertexIds.from_vertices(range(10**15))
    assert huge.find(np.array([10**14, 10**15])).tolist() == [10**14, -1]


def test_arrays_of_the_caller_are_copied():
    vertices = np.array([5, 3, 9])
    ids = VertexIds.from_vertices(vertices)
    vertices[0] = 7
    assert ids.values.tolist() == [5, 3, 9]
    with pytest.raises(ValueError, match="read-only"):
        ids.values[0] = 1


def test_dates_and_pandas_missing_values():
    pandas = pytest.importorskip("pandas")
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    assert VertexIds.from_vertices(days).values.tolist() == list(days)
    with pytest.raises(ValueError, match="position 1: the id is missing"):
        VertexIds.from_vertices(pandas.Series([1, None], dtype="Int64"))


def test_ids_are_found_in_lists_and_arrays_of_any_shape():
    ids = VertexIds.from_vertices(["a", "b", ("c", 1)])
    assert ids.find(["b", ("c", 1), "x"]).tolist() == [1, 2, -1]
    assert ids.find(np.array([["a", "x"], ["b", "a"]])).tolist() == [[0, -1], [1, 0]]
    assert len(ids) == 3
    assert VertexIds.of_rows(None, 3).find([2, 3]).tolist() == [2, -1]


def test_one_id_is_found_and_an_unknown_one_named():
    ids = VertexIds.from_vertices([10, 20])
    assert (ids.find_one(20), ids.find_one(np.int64(10)), ids.find_one(3), ids.find_one("10")) == (1, 0, -1, -1)
    with pytest.raises(ValueError, match=r"^position 1: id 3 is not among the 2 vertices$"):
        ids.locate([10, 3])
