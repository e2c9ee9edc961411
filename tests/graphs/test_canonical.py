import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.canonical import Dropped, DroppedEdgesWarning, check_conductances
from corrvae.graphs.pairs import EdgeError
from support.unchecked import unchecked

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30)


def build(*args, **kwargs):
    """Build a graph, and give it with the one warning it may have raised."""
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
    return sorted(edges), Dropped(times.total() - len(times), loops, len(undirected - both) if mutual else 0)


@given(PAIRS, st.booleans())
def test_edges_and_counts_are_those_of_the_rules(pairs, mutual):
    graph, said = build(pairs, n_vertices=6, directed="mutual" if mutual else None)
    edges, dropped = literal(pairs, mutual)
    assert [tuple(edge) for edge in graph.edges.tolist()] == edges
    assert graph.n_vertices == 6
    assert said == (f"dropped {dropped}" if str(dropped) else None)


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
        ValueError, match=rf"^edge 1: \('b', 'c'\) has conductance {wrong}; it must be finite and positive"
    ):
        build([("a", "b"), ("b", "c")], conductances=[1.0, wrong])


@pytest.mark.parametrize(
    ("conductances", "kind", "sentence"),
    [
        ([1.0], ValueError, r"shape \(2,\).* not \(1,\)"),
        ([[1.0], [1.0]], ValueError, r"not \(2, 1\)"),
        (["a", "b"], TypeError, "real numbers"),
        ([1j, 1j], TypeError, "real numbers"),
        ([1.0, object()], TypeError, r"^edge 1: \(1, 2\) has conductance <object .*real numbers, not object$"),
        ([2.0, "x"], TypeError, r"^edge 1: \(1, 2\) has conductance 'x'; conductances must be real numbers, not str$"),
        ([1.0, None], TypeError, r"^edge 1: \(1, 2\) has conductance None"),
        ([[1.0], [1.0, 2.0]], TypeError, r"^edge 0: \(0, 1\) has conductance \[1.0\]"),
        ([1.0, 10**400], ValueError, r"^edge 1: \(1, 2\) has conductance inf; it must be finite"),
        (np.array([1, "2"], dtype=object), TypeError, r"^edge 1: \(1, 2\) has conductance '2'"),
    ],
)
def test_conductances_must_be_one_number_an_edge(conductances, kind, sentence):
    with pytest.raises(kind, match=sentence):
        build([(0, 1), (1, 2)], conductances=conductances)


def test_checked_conductances_are_new_floats_and_faults_print_as_plain_numbers():
    given = np.array([1.0, 2.0])
    checked = check_conductances(given, 2, "edge {}".format)
    assert checked.tolist() == [1.0, 2.0]
    assert not np.shares_memory(checked, given)
    assert check_conductances(np.array([True]), 1, str).dtype == np.float64
    assert check_conductances([Fraction(1, 2), 3], 2, str).tolist() == [0.5, 3.0]
    assert check_conductances([], 0, str).shape == (0,)
    with pytest.raises(EdgeError) as caught:
        check_conductances(np.array([1, 0]), 2, "the {}th".format)
    assert str(caught.value) == "edge 1: the 1th has conductance 0.0; it must be finite and positive"


def test_conductances_of_repeats_must_not_overflow():
    pairs = [("c", "a"), ("a", "b"), ("a", "b")]
    with pytest.raises(ValueError, match=r"^edge 1: \('a', 'b'\) is given several times with conductances that add up"):
        CorrelationGraph.from_edges(pairs, conductances=[1.0, 1e308, 1e308])
    assert CorrelationGraph.from_edges(pairs, conductances=[1.0, 8e307, 8e307]).conductances.tolist() == [1.6e308, 1.0]


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
    # in a process of its own: the checks around functions while testing add frames to the stack
    script = tmp_path / "script.py"
    script.write_text(
        "from corrvae.graphs import CorrelationGraph\n"
        "from scipy.sparse import csr_array\n"
        "CorrelationGraph.from_edges([(1, 1)])\n"
        "CorrelationGraph.from_scipy(csr_array([[1]]))\n"
        "CorrelationGraph.from_pyg([[0], [0]])\n"
        "CorrelationGraph.from_file(__file__ + '.txt')\n"
    )
    (tmp_path / "script.py.txt").write_text("1 1\n")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    pointed = re.findall(r"script\.py:(\d+): DroppedEdgesWarning", run.stderr)
    assert pointed == ["3", "4", "5", "6"]


def test_direction_is_none_or_mutual():
    with unchecked(), pytest.raises(ValueError, match='directed must be None or "mutual", not True'):
        CorrelationGraph.from_edges([(0, 1)], directed=True)


def test_more_vertices_than_can_be_counted():
    with pytest.raises(ValueError, match="2,147,483,648 vertices are more than"):
        CorrelationGraph.from_edges([(0, 1)], n_vertices=2**31)


def test_the_caller_keeps_his_arrays():
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
def test_the_constructor_refuses_edges_that_are_not_canonical(edges, place):
    with pytest.raises(ValueError, match=f"edge {place}: .* not canonical.*from_edges"):
        CorrelationGraph(edges, 3)
    with pytest.raises(ValueError, match="vertices lists 2 ids for a graph of 3 vertices"):
        CorrelationGraph([[0, 1]], 3, vertices=["a", "b"])
