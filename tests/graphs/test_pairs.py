import pickle
from fractions import Fraction
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds
from corrvae.graphs.pairs import EdgeError, code_pairs, index_pairs, place_edges
from support.unchecked import unchecked

INTEGER_PAIRS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-40, 40)))


def decoded(coded):
    return [tuple(pair) for pair in coded.distinct[coded.codes].tolist()]


@given(INTEGER_PAIRS)
def test_integer_pairs_come_back_and_distinct_ids_are_sorted(pairs):
    for given_as in (pairs, np.array(pairs, dtype=np.int64).reshape(-1, 2)):
        coded = code_pairs(given_as)
        assert decoded(coded) == pairs
        assert coded.distinct.tolist() == sorted({value for pair in pairs for value in pair})


@given(st.lists(st.tuples(st.text(), st.text())))
def test_strings_are_sorted(pairs):
    coded = code_pairs(pairs)
    assert decoded(coded) == pairs
    assert coded.distinct.tolist() == sorted({value for pair in pairs for value in pair})


def test_other_hashables_come_in_order_of_appearance_and_keep_their_type():
    pairs = [((1, 2), "x"), ("x", 7), (frozenset({3}), Fraction(1, 2)), (2**80, b"y")]
    coded = code_pairs(iter(pairs))
    assert decoded(coded) == pairs
    assert coded.distinct.tolist() == [(1, 2), "x", 7, frozenset({3}), Fraction(1, 2), 2**80, b"y"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float64", "float32"])
def test_whole_numbers_of_any_type_are_the_same_ids(dtype):
    coded = code_pairs(np.array([[5, 3], [3, 9]], dtype=dtype))
    assert coded.distinct.dtype == np.int64
    assert decoded(coded) == [(5, 3), (3, 9)]


def test_unsigned_integers_past_64_bits_stay_exact():
    big = 2**64 - 1
    assert decoded(code_pairs(np.array([[big, 3]], dtype=np.uint64))) == [(big, 3)]


def test_string_object_and_list_arrays():
    expected = [("a", "b"), ("b", "c")]
    assert decoded(code_pairs(np.array(expected))) == expected
    assert decoded(code_pairs(np.array(expected, dtype=object))) == expected
    assert decoded(code_pairs([np.array(["a", "b"]), ["b", "c"]])) == expected


def test_no_pairs():
    for nothing in ([], np.empty((0, 2)), np.empty(0), iter(())):
        assert code_pairs(nothing).codes.shape == (0, 2)


@pytest.mark.parametrize(
    ("edges", "kind", "sentence"),
    [
        ([(0, 1), (1, 2, 0.5)], ValueError, r"edge 1: \(1, 2, 0.5\) has 3 entries .*conductances="),
        ([(0, 1), "ab"], TypeError, "edge 1 is 'ab', not a pair"),
        ([(0, 1), 7], TypeError, "edge 1 is 7, not a pair"),
        ([("a", "b"), ("a", None)], ValueError, "edge 1: an id is missing: found None"),
        ([("a", "b"), ("a", float("nan"))], ValueError, "edge 1: an id is missing: found nan"),
        ([("a", "b"), (["c"], "a")], TypeError, r"edge 1: id \['c'\] is not hashable"),
        (np.array([[0, 1], [1, 2.5]]), ValueError, "edge 1: 2.5 is not an integer"),
        (np.array([[0, 1], [np.nan, 2]]), ValueError, "edge 1: nan is not an integer"),
        (np.zeros((2, 5), dtype=int), ValueError, r"shape \(m, 2\).*\(2, 5\); CorrelationGraph.from_pyg"),
        (np.zeros((3, 3), dtype=int), ValueError, r"shape \(m, 2\).*\(3, 3\)$"),
    ],
)
def test_what_is_no_pair_of_ids_is_refused_with_its_place(edges, kind, sentence):
    with pytest.raises(kind, match=sentence):
        code_pairs(edges)


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([(0, 1), (2, -1)], "edge 1: vertex index -1 is negative"),
        ([(0, 1), (3, 1)], "edge 1: vertex index 3 is past the end of 3 vertices"),
        ([(0, 1), (0.5, 1)], "edge 1: vertex index 0.5 is not an integer"),
        ([(0, 1), ("a", 1)], "edge 1: vertex index 'a' is not an integer"),
        ([(0, 1), (True, 2)], "edge 1: vertex index True is not an integer"),
        (np.array([[0, 1], [1, 1.5]]), "edge 1: 1.5 is not an integer"),
        (np.array([[0, 1], [1, 2**63]], dtype=np.uint64), "64 bits"),
        ([(0, 1), (2**63, 1)], "64 bits|past the end"),
    ],
)
def test_wrong_vertex_indices_are_refused_with_their_place(edges, sentence):
    with pytest.raises(ValueError, match=sentence):
        index_pairs(edges, 3)


def test_vertex_indices_must_be_numbers_and_their_count_too():
    with pytest.raises(TypeError, match="integer vertex indices"):
        index_pairs(np.array([["a", "b"]]), 3)
    with unchecked(), pytest.raises(TypeError, match=r"n_vertices must be an integer, not 2\.5"):
        index_pairs([(0, 1)], 2.5)
    with pytest.raises(ValueError, match="must not be negative"):
        index_pairs([], -1)
    assert index_pairs([(0.0, 2)], 3).pairs.tolist() == [[0, 2]]


@given(st.permutations(range(-3, 6)), st.lists(st.tuples(st.integers(-3, 5), st.integers(-3, 5))))
def test_vertices_fix_the_order(vertices, pairs):
    placed = place_edges(pairs, vertices)
    assert placed.pairs.tolist() == [[vertices.index(first), vertices.index(second)] for first, second in pairs]


def test_an_unknown_id_is_refused_with_its_edge_and_may_be_of_the_wrong_type():
    with pytest.raises(ValueError, match=r"^edge 1: id 'c' is not among the 2 vertices$"):
        place_edges([("a", "b"), ("b", "c")], ["a", "b"])
    with pytest.raises(ValueError, match=r"^edge 0: id 1 is not among the 2 vertices, whose ids are like '1' \(str"):
        place_edges(np.array([[1, 2]]), VertexIds.from_vertices(["1", "2"]))
    with pytest.raises(ValueError, match="not both"):
        place_edges([(0, 1)], [0, 1], 2)


def test_edge_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(EdgeError(3, "is odd")))
    assert (error.position, str(error)) == (3, "edge 3: is odd")


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (sparse.csr_array([[0, 1], [1, 0]]), "csr_array; CorrelationGraph.from_scipy reads that"),
        (networkx.path_graph(3), "Graph; CorrelationGraph.from_networkx reads that"),
        (SimpleNamespace(edge_index=[[0], [1]]), "SimpleNamespace; CorrelationGraph.from_pyg reads that"),
        (CorrelationGraph.from_edges([(0, 1)]), "a CorrelationGraph; its id_pairs are"),
    ],
)
@pytest.mark.parametrize("count", [None, 3])
def test_a_graph_in_the_place_of_pairs_is_sent_to_its_reader(graph, sentence, count):
    with unchecked(), pytest.raises(TypeError, match=f"^edges must be pairs of ids, not {sentence}$"):
        place_edges(graph, None, count)
