import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs.ids import VertexIds
from corrvae.vertex_pairs import as_pairs, find_places

PLAIN = VertexIds(None, 3)
NAMED = VertexIds.from_vertices(["a", "b", "c"])
NUMBERED = VertexIds.from_vertices([2, 0, 1])


@given(st.lists(st.permutations(range(4)).map(lambda order: tuple(order[:2])), max_size=5))
def test_places_are_read_from_every_form(pairs):
    vertices = VertexIds.from_vertices(["a", 7, ("x", 1), "d"])
    expected = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    names = vertices.values.tolist()
    forms = [
        pairs,
        [list(pair) for pair in pairs],
        expected.astype(np.int32),
        expected.astype(np.float64),
        expected.astype(object),
        pd.DataFrame(expected),
        iter(pairs),
    ]
    for form in forms:
        found = as_pairs(form, vertices)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
    # 7 beside another number is a place
    ids = [(names[i], names[j]) for i, j in pairs]
    np.testing.assert_array_equal(find_places(ids, vertices), expected)


def test_ids_that_are_no_numbers_are_looked_up():
    for form in ([("a", "c")], np.array([["a", "c"]]), pd.DataFrame([["a", "c"]])):
        assert as_pairs(form, NAMED).tolist() == [[0, 2]]
    tuples = VertexIds.from_vertices([("x", 1), ("x", 2)])
    assert as_pairs([(("x", 2), ("x", 1))], tuples).tolist() == [[1, 0]]


def test_numbers_are_places_and_ids_that_are_numbers_are_located():
    assert as_pairs([(2, 0)], NUMBERED).tolist() == [[2, 0]]
    assert find_places([(2, 0)], NUMBERED).tolist() == [[0, 1]]
    far = VertexIds.from_vertices([100, 200])
    with pytest.raises(ValueError, match=r"pair 0 is \[100, 200\], but .* from 0 to 1; numbers are places"):
        as_pairs([(100, 200)], far)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([0, 1], r"two columns.*shape \(2,\); a single pair is a list of one"),
        (np.array([0, 1]), "a single pair is a list of one"),
        (np.zeros((2, 3), dtype=int), r"two columns.*\(2, 3\)"),
        ([(0, 1), (0, 1, 2)], r"pair 1 is \(0, 1, 2\), which has 3 ends"),
        ([(0, 1), (0.5, 1)], r"pair 1 is \[0.5, 1.0\], but the places of vertices are whole numbers"),
        ([(0, 1), (float("nan"), 1)], r"pair 1 is \[nan, 1.0\]"),
        ([(0, 1), (0, 3)], r"pair 1 is \[0, 3\], but vertices are numbered from 0 to 2"),
        ([(0, -1)], r"pair 0 is \[0, -1\]"),
        ([(1, 1)], "pair 0 joins vertex 1 to itself"),
        ([(0, 1), ("a", "b")], "pair 1: id 'a' is not among the 3 vertices, whose ids are like 0"),
        ([("a", None)], "no id at position 1"),
        (["ab", "cd"], "two columns"),
        (3, r"two columns.*shape \(\)"),
    ],
)
def test_what_is_no_pair_is_said(pairs, words):
    with pytest.raises(ValueError, match=words):
        as_pairs(pairs, PLAIN)


def test_an_unknown_id_is_named():
    with pytest.raises(ValueError, match="pair 1: id 'q' is not among the 3 vertices"):
        as_pairs([("a", "b"), ("q", "c")], NAMED)


def test_truth_values_are_no_vertices():
    with pytest.raises(TypeError, match="not True and False"):
        as_pairs([(True, False)], PLAIN)
