import pickle
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from fractions import Fraction
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.graphs import CorrelationGraph, DroppedEdgesWarning, EdgeError
from corrvae.graphs.edges import (
    check_conductances,
    edge_positions,
    index_pairs,
    pair_codes,
    place_pairs,
)
from corrvae.graphs.ids import VertexIds
from support.graphs import graphs
from support.unchecked import unchecked

INTEGER_PAIRS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-40, 40)))


def placed(pairs):
    """The pairs as they come back, and the ids in their order."""
    positions, ids = place_pairs(pairs)
    return [tuple(pair) for pair in ids.values[positions].tolist()], ids.values.tolist()


@given(INTEGER_PAIRS)
def test_integer_pairs_come_back_and_distinct_ids_are_sorted(pairs):
    for given_as in (pairs, np.array(pairs, dtype=np.int64).reshape(-1, 2)):
        assert placed(given_as) == (pairs, sorted({value for pair in pairs for value in pair}))


@given(st.lists(st.tuples(st.text(), st.text())))
def test_strings_are_sorted(pairs):
    assert placed(pairs) == (pairs, sorted({value for pair in pairs for value in pair}))


def test_other_hashables_come_in_order_of_appearance_and_keep_their_type():
    pairs = [((1, 2), "x"), ("x", 7), (frozenset({3}), Fraction(1, 2)), (2**80, b"y")]
    assert placed(iter(pairs)) == (pairs, [(1, 2), "x", 7, frozenset({3}), Fraction(1, 2), 2**80, b"y"])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float64", "float32"])
def test_whole_numbers_of_any_type_are_the_same_ids(dtype):
    positions, ids = place_pairs(np.array([[5, 3], [3, 9]], dtype=dtype))
    assert ids.values.dtype == positions.dtype == np.int64
    assert ids.values[positions].tolist() == [[5, 3], [3, 9]]


def test_unsigned_integers_past_64_bits_stay_exact():
    big = 2**64 - 1
    assert placed(np.array([[big, 3]], dtype=np.uint64))[0] == [(big, 3)]


def test_string_object_and_list_arrays():
    expected = [("a", "b"), ("b", "c")]
    for given_as in (np.array(expected), np.array(expected, dtype=object), [np.array(["a", "b"]), ["b", "c"]]):
        assert placed(given_as)[0] == expected


def test_no_pairs():
    for nothing in ([], np.empty((0, 2)), np.empty(0), iter(())):
        assert place_pairs(nothing)[0].shape == (0, 2)


@pytest.mark.parametrize(
    ("edges", "kind", "sentence"),
    [
        ([(0, 1), (1, 2, 0.5)], ValueError, r"edge 1: \(1, 2, 0.5\) has 3 entries .*conductances="),
        ([(0, 1), "ab"], TypeError, "edge 1 is 'ab', not a pair"),
        ([(0, 1), 7], TypeError, "edge 1 is 7, not a pair"),
        ([("a", "b"), ("a", None)], ValueError, "edge 1: the id is missing .found None"),
        ([("a", "b"), ("a", float("nan"))], ValueError, "edge 1: the id is missing .found nan"),
        ([("a", "b"), (["c"], "a")], ValueError, r"edge 1: id \['c'\] is not hashable"),
        (np.array([[0, 1], [1, 2.5]]), ValueError, "edge 1: 2.5 is not an integer"),
        (np.array([[0, 1], [np.nan, 2]]), ValueError, "edge 1: nan is not an integer"),
        (np.zeros((2, 5), dtype=int), ValueError, r"shape \(m, 2\).*\(2, 5\); CorrelationGraph.from_pyg"),
        (np.zeros((3, 3), dtype=int), ValueError, r"shape \(m, 2\).*\(3, 3\)$"),
    ],
)
def test_what_is_no_pair_of_ids_raises_with_its_place(edges, kind, sentence):
    with pytest.raises(kind, match=sentence):
        place_pairs(edges)


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([(0, 1), (2, -1)], "edge 1: vertex index -1 is negative"),
        ([(0, 1), (3, 1)], "edge 1: vertex index 3 is past the end of 3 vertices"),
        ([(0, 1), (0.5, 1)], "edge 1: 0.5 is not an integer"),
        ([(0, 1), ("a", 1)], "edge 1: 'a' is not an integer"),
        ([(0, 1), (True, 2)], "edge 1: True is not an integer"),
        (np.array([[0, 1], [1, 1.5]]), "edge 1: 1.5 is not an integer"),
        (np.array([[0, 1], [1, 2**63]], dtype=np.uint64), "64 bits"),
        ([(0, 1), (2**63, 1)], "64 bits|past the end"),
    ],
)
def test_wrong_vertex_indices_raise_with_their_place(edges, sentence):
    with pytest.raises(ValueError, match=sentence):
        index_pairs(edges, 3)


def test_vertex_indices_must_be_numbers_and_their_count_too():
    with pytest.raises(ValueError, match="edge 0: 'a' is not an integer"):
        index_pairs(np.array([["a", "b"]]), 3)
    with unchecked(), pytest.raises(TypeError, match=r"cannot be interpreted as an integer"):
        index_pairs([(0, 1)], 2.5)
    with pytest.raises(ValueError, match="must not be negative"):
        index_pairs([], -1)
    for whole in (np.array([[0.0, 2.0]]), [(0.0, 2)], [(np.int8(0), np.float64(2))]):
        assert index_pairs(whole, 3).tolist() == [[0, 2]]
    for big in (2**63, 2**70, -(2**70)):
        with pytest.raises(ValueError, match=r"64 bits|past the end|negative"):
            index_pairs([(0, big)], 3)


@given(st.permutations(range(-3, 6)), st.lists(st.tuples(st.integers(-3, 5), st.integers(-3, 5))))
def test_vertices_fix_the_order(vertices, pairs):
    assert place_pairs(pairs, vertices)[0].tolist() == [
        [vertices.index(first), vertices.index(second)] for first, second in pairs
    ]


def test_an_unknown_id_raises_with_its_edge_and_may_be_of_the_wrong_type():
    with pytest.raises(ValueError, match=r"^edge 1: id 'c' is not among the 2 vertices$"):
        place_pairs([("a", "b"), ("b", "c")], ["a", "b"])
    with pytest.raises(ValueError, match=r"^edge 0: id 1 is not among the 2 vertices, whose ids are like '1' \(str"):
        place_pairs(np.array([[1, 2]]), VertexIds.from_vertices(["1", "2"]))
    with pytest.raises(ValueError, match="not both"):
        CorrelationGraph.from_edges([(0, 1)], vertices=[0, 1], n_vertices=2)


def test_edge_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(EdgeError(3, "is odd")))
    assert (error.position, str(error)) == (3, "edge 3: is odd")


@pytest.mark.parametrize(
    "graph",
    [
        sparse.csr_array([[0, 1], [1, 0]]),
        networkx.path_graph(3),
        SimpleNamespace(edge_index=[[0], [1]]),
        CorrelationGraph.from_edges([(0, 1)]),
    ],
)
@pytest.mark.parametrize("count", [None, 3])
def test_a_graph_in_the_place_of_pairs_is_named_with_its_readers(graph, count):
    sentence = f"^edges must be pairs of ids, not {type(graph).__name__}; CorrelationGraph.from_scipy, from_networkx"
    with unchecked(), pytest.raises(TypeError, match=sentence):
        CorrelationGraph.from_edges(graph, n_vertices=count)


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30)


def build(*args, **kwargs):
    """Build a graph; return it with the one warning it may have raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = CorrelationGraph.from_edges(*args, **kwargs)
    assert len(caught) <= 1
    return graph, str(caught[0].message) if caught else None


def literal(pairs, mutual):
    """Spell the rules out: edges, repeats, self-loops, one-way edges."""
    times = Counter(pair for pair in pairs if pair[0] != pair[1])
    undirected = {tuple(sorted(pair)) for pair in times}
    both = {(i, j) for i, j in undirected if (i, j) in times and (j, i) in times}
    edges = both if mutual else undirected
    loops = sum(i == j for i, j in pairs)
    counts = {"repeated edge": times.total() - len(times), "self-loop": loops}
    counts["one-way edge"] = len(undirected - both) if mutual else 0
    parts = [f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count]
    return sorted(edges), " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


@given(PAIRS, st.booleans())
def test_edges_and_counts_are_those_of_the_rules(pairs, mutual):
    graph, said = build(pairs, n_vertices=6, directed="mutual" if mutual else None)
    edges, dropped = literal(pairs, mutual)
    assert [tuple(edge) for edge in graph.edges.tolist()] == edges
    assert graph.n_vertices == 6
    assert said == (f"dropped {dropped}" if dropped else None)


@given(PAIRS, st.booleans(), st.booleans())
def test_vertices_are_those_with_an_edge_unless_kept(pairs, mutual, keep):
    graph, said = build(pairs, directed="mutual" if mutual else None, keep_isolated=keep)
    edges, _ = literal(pairs, mutual)
    named = {vertex for pair in pairs for vertex in pair}
    joined = {vertex for edge in edges for vertex in edge}
    assert graph.ids.tolist() == sorted(named if keep else joined)
    assert [tuple(pair) for pair in graph.id_pairs.tolist()] == edges
    lost = 0 if keep else len(named - joined)
    assert (f"{lost} vert" in (said or "")) == bool(lost)


@given(PAIRS)
def test_repeated_conductances_add_up_and_directions_must_agree(pairs):
    # whole numbers of halves: sums are exact
    conductances = [0.5 * (1 + k % 3) for k in range(len(pairs))]
    sums = defaultdict(float)
    for pair, conductance in zip(pairs, conductances, strict=True):
        sums[pair] += conductance
    disagree = any(i != j and (j, i) in sums and sums[i, j] != sums[j, i] for i, j in sums)
    if disagree:
        with pytest.raises(ValueError, match=r"in one direction and .* the two must agree"):
            build(pairs, conductances=conductances, n_vertices=6)
        return
    graph, said = build(pairs, conductances=conductances, n_vertices=6)
    expected = {tuple(sorted(pair)): total for pair, total in sums.items() if pair[0] != pair[1]}
    assert dict(zip(map(tuple, graph.edges.tolist()), graph.conductances.tolist(), strict=True)) == expected
    assert "repeat" not in (said or "")


def test_symmetric_storage_is_no_repeat():
    graph, said = build([(0, 1), (1, 2), (1, 0), (2, 1)])
    assert graph.n_edges == 2
    assert said is None
    graph, said = build([(0, 1), (1, 0)], conductances=[0.1 + 0.2, 0.3])
    assert graph.conductances == pytest.approx([0.3])
    assert said is None


def test_mutual_edges_keep_their_conductance():
    graph, said = build([(0, 1), (1, 0), (1, 2)], conductances=[2.0, 2.0, 5.0], directed="mutual", n_vertices=3)
    assert graph.edges.tolist() == [[0, 1]]
    assert graph.conductances.tolist() == [2.0]
    assert said == "dropped 1 one-way edge"


def test_directions_that_disagree_name_the_edge():
    with pytest.raises(ValueError, match=r"^edge 2: \('a', 'b'\) has conductance 1.0 in one direction and 2.0"):
        build([("a", "b"), ("b", "c"), ("b", "a")], conductances=[1, 1, 2])


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, -np.inf])
def test_conductances_must_be_finite_and_positive(wrong):
    with pytest.raises(
        ValueError, match=rf"^edge 1: \('b', 'c'\) has conductance {wrong}; it must be a finite and positive number"
    ):
        build([("a", "b"), ("b", "c")], conductances=[1.0, wrong])


@pytest.mark.parametrize(
    ("conductances", "sentence"),
    [
        ([1.0], r"shape \(2,\).* not \(1,\)"),
        (np.ones((2, 1)), r"not \(2, 1\)"),
        (["a", "b"], "could not convert string to float: 'a'"),
        ([1.0, None], r"^edge 1: \(1, 2\) has conductance nan"),
    ],
)
def test_conductances_must_be_one_number_an_edge(conductances, sentence):
    with pytest.raises(ValueError, match=sentence):
        build([(0, 1), (1, 2)], conductances=conductances)


def test_checked_conductances_are_new_floats_and_faults_print_as_plain_numbers():
    pairs, ids, given = np.array([[0, 1], [1, 2]]), VertexIds.from_vertices("abc"[k] for k in range(3)), np.ones(2)
    checked = check_conductances(given, pairs, ids)
    assert checked.tolist() == [1.0, 1.0]
    assert not np.shares_memory(checked, given)
    assert check_conductances(np.array([True]), pairs[:1], ids).dtype == np.float64
    assert check_conductances([Fraction(1, 2), 3], pairs, ids).tolist() == [0.5, 3.0]
    assert check_conductances([], pairs[:0], ids).shape == (0,)
    with pytest.raises(EdgeError) as caught:
        check_conductances(np.array([1.0, 0.0]), pairs, ids)
    assert str(caught.value) == "edge 1: ('b', 'c') has conductance 0.0; it must be a finite and positive number"


def test_everything_dropped_is_in_one_warning():
    pairs = [(0, 1), (1, 0), (0, 1), (2, 2), (2, 3), (4, 4)]
    with pytest.warns(DroppedEdgesWarning) as caught:
        graph = CorrelationGraph.from_edges(pairs, directed="mutual")
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "dropped 1 repeated edge, 2 self-loops, 1 one-way edge and 3 vertices left without an edge;"
        " keep_isolated=True or vertices= keeps such vertices"
    )
    assert graph.ids.tolist() == [0, 1]


def test_the_warning_points_at_the_callers_line(tmp_path):
    # in a process of its own: the type checks around functions while testing add frames to the stack
    script = tmp_path / "script.py"
    script.write_text(
        "from corrvae.graphs import CorrelationGraph\n"
        "from scipy.sparse import csr_array\n"
        "CorrelationGraph.from_edges([(1, 1)])\n"
        "CorrelationGraph.from_scipy(csr_array([[1]]))\n"
        "CorrelationGraph.from_pyg([[0], [0]])\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    pointed = re.findall(r"script\.py:(\d+): DroppedEdgesWarning", run.stderr)
    assert pointed == ["3", "4", "5"]


def test_direction_is_none_or_mutual():
    with unchecked(), pytest.raises(ValueError, match='directed must be None or "mutual", not True'):
        CorrelationGraph.from_edges([(0, 1)], directed=True)


def test_arrays_of_the_caller_are_copied():
    edges, conductances = np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0])
    graph = CorrelationGraph.from_edges(edges, conductances=conductances, n_vertices=3)
    direct = CorrelationGraph(edges, 3, conductances=conductances)
    edges[:], conductances[:] = 0, 9.0
    assert graph == direct
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.conductances.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("edges", "place"),
    [([[1, 0]], 0), ([[0, 0]], 0), ([[0, 2], [0, 1]], 1), ([[0, 1], [0, 1]], 1), ([[1, 2], [0, 1]], 1)],
)
def test_the_constructor_raises_for_edges_that_are_not_canonical(edges, place):
    with pytest.raises(ValueError, match=f"edge {place}: .* not canonical.*from_edges"):
        CorrelationGraph(edges, 3)
    with pytest.raises(ValueError, match="vertices lists 2 ids for a graph of 3 vertices"):
        CorrelationGraph([[0, 1]], 3, vertices=["a", "b"])


@given(graphs(), st.data())
def test_positions_of_pairs_in_either_order(graph, data):
    vertex = st.integers(0, graph.n_vertices - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(vertex, vertex))), dtype=np.int64).reshape(-1, 2)
    edges = graph.edges.tolist()
    expected = [edges.index(sorted(pair)) if sorted(pair) in edges else -1 for pair in pairs.tolist()]
    assert edge_positions(graph.edges, graph.n_vertices, pairs).tolist() == expected


@given(graphs())
def test_codes_increase_along_canonical_edges_and_forget_the_order(graph):
    codes = pair_codes(graph.edges, graph.n_vertices)
    assert (np.diff(codes) > 0).all()
    assert np.array_equal(codes, pair_codes(graph.edges[:, ::-1], graph.n_vertices))


def test_keys_of_many_kinds_are_indices():
    graph = CorrelationGraph.from_edges([(0, 1), (1, 3)], n_vertices=5)
    for key in ([1, 3], np.array([1, 3], dtype=np.uint8), range(1, 5, 2), slice(1, None, 2), ([1, 3], ...)):
        assert graph[key].ids.tolist() == [1, 3]
    assert graph[[False, True, False, True, False]].ids.tolist() == [1, 3]
    assert graph[[]].n_vertices == 0
