from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corrvae.graphs import CorrelationGraph, split_edges
from support.graphs import graphs
from support.unchecked import unchecked

SHARES = st.sampled_from([0.0, 0.05, 0.07, 0.1, 0.3, 0.5, 0.9])
STRATEGIES = st.sampled_from(["per_vertex", "random"])


def complete(count):
    return CorrelationGraph.from_edges([(i, j) for i in range(count) for j in range(i)])


@given(graphs(ids=True, max_vertices=12), STRATEGIES, SHARES, SHARES, st.integers(0, 99))
def test_parts_are_disjoint_cover_all_edges_and_keep_all_vertices(graph, strategy, test, validation, seed):
    split = split_edges(graph, strategy, test=test, validation=validation, random_state=seed)
    parts = [split.train.edges, split.validation, split.test]
    together = [tuple(edge) for part in parts for edge in part.tolist()]
    assert sorted(together) == [tuple(edge) for edge in graph.edges.tolist()]
    assert split.train.ids.tolist() == graph.ids.tolist()
    held = np.concatenate([split.validation, split.test])
    assert split.train == graph.without(graph.ids[held])
    for part in parts:
        assert part.tolist() == sorted(part.tolist())
    assert split.known == graph.without(graph.ids[split.test])
    if strategy == "random":
        assert len(split.test) == round(test * graph.n_edges)
        assert len(split.validation) == round(validation * split.known.n_edges)


@given(graphs(max_vertices=12), st.integers(1, 19), st.integers(0, 99))
def test_each_vertex_holds_out_its_share(graph, twentieths, seed):
    share = Fraction(twentieths, 20)
    split = split_edges(graph, test=float(share), validation=float(share), random_state=seed)
    for whole, edges in ((graph, split.test), (split.known, split.validation)):
        held = np.bincount(edges.ravel(), minlength=graph.n_vertices)
        quota = np.array([ceil(share * int(degree)) for degree in whole.degrees], dtype=int)
        # others may hold out more of a vertex's edges, never fewer; and nobody holds out an edge without need
        assert (held >= quota).all()
        assert len(edges) <= quota.sum()


@pytest.mark.parametrize(("share", "degree"), [(0.07, 100), (0.29, 100), (0.05, 20), (0.05, 21), (0.1, 30)])
def test_shares_are_not_rounded_up_past_their_number(share, degree):
    # bipartite, and every vertex of the same degree
    side = degree + 1
    graph = CorrelationGraph.from_edges([(i, side + (i + k) % side) for i in range(side) for k in range(degree)])
    assert set(graph.degrees.tolist()) == {degree}
    quota = ceil(Fraction(str(share)) * degree)
    # the two ends of an edge choose independently: this many edges of the union on average, by a wide margin
    chosen = 1 - (1 - quota / degree) ** 2
    split = split_edges(graph, test=share, validation=0.0, random_state=0)
    assert len(split.test) / graph.n_edges == pytest.approx(chosen, abs=0.3 / degree)


@given(graphs(max_vertices=12), STRATEGIES, st.integers(0, 99))
def test_one_seed_one_split(graph, strategy, seed):
    first, second = (split_edges(graph, strategy, test=0.3, random_state=seed) for _ in range(2))
    third = split_edges(graph, strategy, test=0.3, random_state=np.random.default_rng(seed))
    for other in (second, third):
        assert first.train == other.train
        assert np.array_equal(first.test, other.test)
        assert np.array_equal(first.validation, other.validation)


def test_seeds_differ_and_global_state_is_left_alone():
    graph = complete(12)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    tests = {split_edges(graph, "random", test=0.3, random_state=seed).test.tobytes() for seed in range(20)}
    assert len(tests) == 20
    split_edges(graph)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("strategy", ["per_vertex", "random"])
def test_every_edge_is_held_out_equally_often(strategy):
    graph = complete(6)
    runs = 1000
    tested, validated = np.zeros(graph.n_edges), np.zeros(graph.n_edges)
    generator = np.random.default_rng(4)
    codes = {tuple(edge): k for k, edge in enumerate(graph.edges.tolist())}
    for _ in range(runs):
        split = split_edges(graph, strategy, test=0.2, validation=0.3, random_state=generator)
        tested[[codes[tuple(edge)] for edge in split.test.tolist()]] += 1
        validated[[codes[tuple(edge)] for edge in split.validation.tolist()]] += 1
    # negative dependence makes these counts less spread than independent ones: the test errs on the safe side
    assert stats.chisquare(tested).pvalue > 1e-4
    assert stats.chisquare(validated).pvalue > 1e-4


def test_a_vertex_of_degree_one_loses_its_edge_and_stays():
    graph = CorrelationGraph.from_edges([("a", "b"), ("c", "d")])
    split = split_edges(graph, validation=0.0, random_state=0)
    assert split.train == CorrelationGraph.from_edges([], vertices=["a", "b", "c", "d"])
    assert graph.ids[split.test].tolist() == [["a", "b"], ["c", "d"]]
    assert repr(split) == "EdgeSplit(train=0, validation=0, test=2 edges)"


def test_conductances_stay_with_their_edges():
    edges = [(i, i + 1) for i in range(40)]
    graph = CorrelationGraph.from_edges(edges, conductances=[float(i + 1) for i in range(40)])
    train = split_edges(graph, "random", test=0.5, random_state=0).train
    assert train.conductances.tolist() == [i + 1.0 for i, _ in train.edges.tolist()]


def test_a_graph_without_edges_splits_into_nothing():
    split = split_edges(CorrelationGraph.from_edges([], n_vertices=3), random_state=0)
    assert (split.train.n_vertices, split.validation.shape, split.test.shape) == (3, (0, 2), (0, 2))


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ({"strategy": "spatial"}, ValueError, '"per_vertex" or "random", not \'spatial\''),
        ({"test": 1.0}, ValueError, "test must be at least 0 and less than 1, but is 1.0"),
        ({"validation": -0.1}, ValueError, "validation must be at least 0"),
        ({"test": float("nan")}, ValueError, "test must be at least 0"),
        ({"test": "5%"}, ValueError, "test must be at least 0 and less than 1, but is '5%'"),
    ],
)
def test_wrong_arguments_raise(arguments, kind, sentence):
    with unchecked(), pytest.raises(kind, match=sentence):
        split_edges(complete(4), **arguments)
