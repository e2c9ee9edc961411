import math
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import psutil
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph, SpanningPlan, SpanningWeights, spanning_weights
from corrvae.graphs.forests import add_ground
from corrvae.graphs.weights import plan as module
from corrvae.graphs.weights.plan import dense_weights, forests_needed
from support.elimination import conductance_matrix, exact_resistances
from support.forests import enumerate_forests
from support.graphs import graphs
from support.resistance import conductances_of, forest_weights, from_networkx, scale_free, solved_weights
from support.unchecked import unchecked

METHODS = ["auto", "exact", "sketch", "sample"]


@given(graphs(max_vertices=6))
def test_exact_weights_are_shares_of_forests(graph):
    weights = spanning_weights(graph, "exact").weights
    assert np.allclose(weights, forest_weights(graph, enumerate_forests(graph)), atol=1e-12)


@given(graphs(max_vertices=6))
def test_log_forests_is_the_sum_over_forests(graph):
    shares = np.log(conductances_of(graph)) @ enumerate_forests(graph).T
    for result in (spanning_weights(graph), SpanningPlan(graph, method="exact").solve()):
        assert np.isclose(result.log_forests, np.logaddexp.reduce(shares), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("conductance_seed", [None, 1])
def test_log_forests_of_a_dense_core(conductance_seed):
    graph = scale_free(600, conductance_seed)
    matrix = conductance_matrix(graph)
    laplacian = np.diag(matrix.sum(1)) - matrix
    expected = np.linalg.slogdet(laplacian[1:, 1:])[1]
    assert np.isclose(spanning_weights(graph, "exact").log_forests, expected, rtol=1e-10)
    assert spanning_weights(graph, "sketch").log_forests is None


@given(graphs(max_vertices=40))
@settings(max_examples=60)
def test_exact_weights_are_resistances(graph):
    if graph.conductances is not None:  # the dense solve loses its digits at the range of conductances that is drawn
        graph = CorrelationGraph(graph.edges, graph.n_vertices, conductances=np.cbrt(graph.conductances))
    result = spanning_weights(graph)
    assert result.method == "exact"
    assert np.allclose(result.weights, solved_weights(graph), atol=1e-10)
    assert np.isclose(result.weights.sum(), graph.n_vertices - graph.n_connected, rtol=1e-12)
    assert np.all((result.weights > 0) & (result.weights <= 1))


@given(graphs(max_vertices=8))
@settings(max_examples=30)
def test_exact_weights_are_resistances_in_fractions(graph):
    assume(graph.n_connected == 1 and graph.n_vertices > 1)
    expected = conductances_of(graph) * exact_resistances(conductance_matrix(graph))[tuple(graph.edges.T)]
    assert np.allclose(spanning_weights(graph, "exact").weights, expected, rtol=1e-10, atol=0.0)


@pytest.mark.parametrize("conductance_seed", [None, 1])
def test_a_dense_core_changes_nothing(conductance_seed):
    graph = scale_free(600, conductance_seed)
    result = spanning_weights(graph, "exact")
    assert result.core_size >= 64
    assert np.allclose(result.weights, solved_weights(graph), atol=1e-11)


@given(graphs(max_vertices=12))
def test_bridges_are_exactly_one(graph):
    bridges = {tuple(sorted(edge)) for edge in nx.bridges(graph.to_networkx())}
    weights = spanning_weights(graph).weights
    weight_of = {tuple(edge): weight for edge, weight in zip(graph.edges.tolist(), weights, strict=True)}
    assert all(weight_of[bridge] == 1.0 for bridge in bridges)


@given(graphs(max_vertices=10), st.floats(1e-3, 1e3))
def test_scaling_all_conductances_changes_nothing(graph, factor):
    plan = SpanningPlan(graph)
    conductances = conductances_of(graph)
    assert np.allclose(plan.solve(factor * conductances).weights, plan.solve(conductances).weights, rtol=1e-9)


@given(graphs(max_vertices=10), st.randoms(use_true_random=False))
def test_relabelling_vertices_moves_the_weights_along(graph, random):
    permutation = list(range(graph.n_vertices))
    random.shuffle(permutation)
    relabelled = graph[permutation]  # vertex k of it is vertex permutation[k] of the graph
    before = {tuple(e): w for e, w in zip(graph.edges.tolist(), spanning_weights(graph).weights, strict=True)}
    for (i, j), weight in zip(relabelled.edges, spanning_weights(relabelled).weights, strict=True):
        assert np.isclose(weight, before[tuple(sorted((permutation[i], permutation[j])))], rtol=1e-9)


@given(graphs(max_vertices=10))
def test_an_isolated_vertex_changes_nothing(graph):
    bigger = CorrelationGraph(graph.edges, graph.n_vertices + 1, conductances=graph.conductances)
    assert np.array_equal(spanning_weights(bigger).weights, spanning_weights(graph).weights)


@given(graphs(max_vertices=25))
@settings(max_examples=40)
def test_sketched_and_sampled_weights_keep_the_rules(graph):
    for method in ("sketch", "sample"):
        weights = spanning_weights(graph, method, random_state=0).weights
        assert np.all((weights > 0) & (weights <= 1))
        assert np.isclose(weights.sum(), graph.n_vertices - graph.n_connected, rtol=1e-9)


@pytest.mark.parametrize("method", ["sketch", "sample"])
@pytest.mark.parametrize("conductance_seed", [None, 2])
def test_approximations_keep_their_promise(method, conductance_seed):
    graph = scale_free(120, conductance_seed)
    truth = spanning_weights(graph, "exact").weights
    n_seeds, missed = 60, np.zeros(graph.n_edges)
    for seed in range(n_seeds):
        result = spanning_weights(graph, method, epsilon=0.08, delta=0.1, random_state=seed)
        assert result.error <= 0.08
        assert result.confidence == 0.9
        missed += np.abs(result.weights - truth) > result.error
    # each edge may miss with probability 0.1; 60 draws of that exceed 16 once in ten thousand
    assert missed.max() <= 16
    assert missed.mean() / n_seeds <= 0.1


@pytest.mark.parametrize("method", ["sketch", "sample"])
def test_the_simultaneous_promise_holds_for_all_edges_at_once(method):
    graph = scale_free(120)
    truth = spanning_weights(graph, "exact").weights
    failures = 0
    for seed in range(20):
        result = spanning_weights(graph, method, epsilon=0.1, delta=0.1, simultaneous=True, random_state=seed)
        failures += bool(np.any(np.abs(result.weights - truth) > 0.1))
    assert failures <= 6  # 20 draws of probability 0.1 exceed 6 twice in a thousand


def test_standard_errors_are_calibrated_and_estimates_unbiased():
    graph = scale_free(400)
    truth = spanning_weights(graph, "exact").weights
    n_seeds = 30
    results = [spanning_weights(graph, "sketch", random_state=seed) for seed in range(n_seeds)]
    errors = np.array([result.weights - truth for result in results])
    stated = np.array([result.standard_errors for result in results])
    spread = errors.std(axis=0, ddof=1)
    estimated = spread > 0
    ratio = np.sqrt(np.mean(stated**2, axis=0))[estimated] / spread[estimated]
    assert 0.95 < np.median(ratio) < 1.4  # a little more cautious than needed where vertices were eliminated
    t = errors.mean(axis=0)[estimated] / (spread[estimated] / np.sqrt(n_seeds))
    assert np.sqrt(np.mean(t**2)) < 1.25


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "graph",
    [
        CorrelationGraph(np.zeros((0, 2), int), 1),
        CorrelationGraph(np.zeros((0, 2), int), 5),
        from_networkx(nx.random_labeled_tree(50, seed=1)),
        from_networkx(nx.complete_graph(70)),
        from_networkx(nx.disjoint_union_all([nx.complete_graph(5), nx.cycle_graph(9), nx.empty_graph(3)])),
        from_networkx(nx.wheel_graph(500)),  # its hub is eliminated last
    ],
    ids=["one vertex", "no edges", "tree", "complete", "pieces", "wheel"],
)
def test_special_graphs(method, graph):
    result = spanning_weights(graph, method, random_state=0)
    assert len(result) == graph.n_edges
    assert np.isclose(result.weights.sum(), graph.n_vertices - graph.n_connected)
    assert np.allclose(result.weights, solved_weights(graph), atol=1e-10 if result.bound == "rounding" else 0.25)


def test_a_plan_serves_any_conductances():
    graph = scale_free(500)
    plan = SpanningPlan(graph)
    for seed in range(3):
        conductances = 10.0 ** np.random.default_rng(seed).uniform(-2, 2, graph.n_edges)
        weighted = CorrelationGraph(graph.edges, graph.n_vertices, conductances=conductances)
        assert np.array_equal(plan.solve(conductances).weights, spanning_weights(weighted).weights)
    assert np.array_equal(plan.solve().weights, spanning_weights(graph).weights)


def test_auto_sketches_only_what_is_not_affordable(monkeypatch):
    monkeypatch.setattr("corrvae.graphs.weights.plan._AFFORDABLE_SECONDS", 5e-4)
    graph = from_networkx(nx.disjoint_union(nx.barabasi_albert_graph(900, 4, seed=0), nx.complete_graph(5)))
    result = spanning_weights(graph, random_state=0)
    assert result.method == "sketch"
    assert "sketch of a core" in result.route
    clique = graph.edges[:, 0] >= 900
    assert np.allclose(result.weights[clique], 0.4, atol=1e-14)
    assert np.all(result.standard_errors[clique] == 0.0)


def test_the_memory_budget_is_respected_or_an_error_states_the_need():
    graph = from_networkx(nx.complete_graph(400))
    sentence = r"dense core of 400 vertices\) needs .* MB .* memory_budget is 8.0 MB; method='auto'"
    with pytest.raises(MemoryError, match=sentence):
        spanning_weights(graph, "exact", memory_budget=8e6)
    assert spanning_weights(graph, "exact", memory_budget=20e6).core_size == 400
    with pytest.raises(MemoryError, match="the analysis of the graph needs"):
        spanning_weights(graph, memory_budget=1e6)


def test_auto_stays_within_the_budget_by_sketching():
    graph = from_networkx(nx.gnm_random_graph(2500, 30_000, seed=0))
    with pytest.raises(MemoryError, match="dense core"):
        spanning_weights(graph, "exact", memory_budget=26e6)
    tight = spanning_weights(graph, memory_budget=26e6, random_state=0, n_threads=1)
    assert tight.method == "sketch"
    roomy = spanning_weights(graph)
    assert roomy.method == "exact"
    assert np.abs(tight.weights - roomy.weights).mean() < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits(method):
    graph = scale_free(700, 1)
    first, second = (spanning_weights(graph, method, random_state=7, n_threads=1).weights for _ in range(2))
    assert np.array_equal(first, second)
    if method in ("sketch", "sample"):  # for any number of threads
        assert np.array_equal(first, spanning_weights(graph, method, random_state=7, n_threads=2).weights)
        assert not np.array_equal(first, spanning_weights(graph, method, random_state=8).weights)


def test_the_result_states_what_was_done():
    result = spanning_weights(scale_free(600), "exact")
    assert repr(result).startswith("SpanningWeights(1,791 edges, exact with a dense core of ")
    assert np.array_equal(np.asarray(result), result.weights)
    assert result.error == 0.0
    assert result.seconds > 0.0
    with pytest.raises(ValueError, match="read-only"):
        result.weights[0] = 2.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "fast"}, "method must be 'auto', 'exact', 'sketch' or 'sample', not 'fast'"),
        ({"epsilon": 0.0}, "epsilon must be a number between 0 and 1, not 0.0"),
        ({"delta": 1.5}, "delta must be a number between 0 and 1, not 1.5"),
        ({"epsilon": "a"}, "epsilon must be a number between 0 and 1, not 'a'"),
        ({"method": "sketch", "epsilon": 1e-5}, "epsilon=1e-05 needs .* projections; ask for at least"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, sentence):
    with unchecked(), pytest.raises(ValueError, match=sentence):
        spanning_weights(scale_free(100), **arguments)


def test_bad_conductances_get_a_sentence():
    plan = SpanningPlan(CorrelationGraph.from_edges([("a", "b"), ("b", "c")]))
    with pytest.raises(ValueError, match=r"shape \(2,\), one for each .*edge, not \(3,\)"):
        plan.solve(np.ones(3))
    with pytest.raises(ValueError, match=r"edge 1: \('b', 'c'\) has conductance nan"):
        plan.solve(np.array([1.0, np.nan]))


def test_only_a_correlation_graph_is_accepted():
    with unchecked(), pytest.raises(TypeError, match="must be a CorrelationGraph, not Graph: make one with"):
        spanning_weights(nx.path_graph(3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("conductance", [1e308, 1e-308, 5e-324])
def test_extreme_conductances_are_scaled(method, conductance):
    graph = CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], conductances=np.full(5, conductance))
    plain = CorrelationGraph(graph.edges, 4)
    weights = [spanning_weights(each, method, random_state=0).weights for each in (graph, plain)]
    assert np.allclose(*weights, rtol=1e-12 if method != "sample" else 0.1)


def test_conductances_too_far_apart_raise():
    with pytest.raises(ValueError, match="differ by more than floating-point numbers can hold"):
        spanning_weights(CorrelationGraph.from_edges([(0, 1), (1, 2)], conductances=[1e308, 1e-308]))


@given(st.floats(0.005, 0.9), st.floats(1e-9, 0.9))
def test_hoeffdings_inequality_holds_for_that_many_and_not_for_fewer(epsilon, delta):
    n = forests_needed(epsilon, delta)
    assert 2 * math.exp(-2 * n * epsilon**2) <= delta * (1 + 1e-9)
    assert 2 * math.exp(-2 * (n - 1) * epsilon**2) >= delta * (1 - 1e-9)


@given(graphs(max_vertices=6))
def test_dense_weights_are_shares_of_all_forests(graph):
    graph = CorrelationGraph(graph.edges, graph.n_vertices)  # without conductances
    if graph.n_edges == 0:
        return
    np.testing.assert_allclose(dense_weights(graph)[0], enumerate_forests(graph).mean(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("made", "expected"),
    [(nx.complete_graph(400), 2 / 400), (nx.cycle_graph(1500), 1499 / 1500), (nx.path_graph(1000), 1.0)],
)
def test_dense_weights_of_known_graphs(made, expected):
    found, _ = dense_weights(CorrelationGraph.from_networkx(made))
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert (found == 1.0).all() == (expected == 1.0)


def test_dense_weights_of_bridges_are_exactly_one_and_their_sum_is_known():
    made = nx.disjoint_union(nx.lollipop_graph(30, 200), nx.barbell_graph(40, 3))
    graph = CorrelationGraph.from_networkx(made)
    found, _ = dense_weights(graph)
    bridges = {frozenset(edge) for edge in nx.bridges(made)}
    assert [weight == 1.0 for weight in found] == [frozenset(pair) in bridges for pair in graph.id_pairs.tolist()]
    assert found.sum() == pytest.approx(graph.n_vertices - 2, rel=1e-12)


def test_small_and_large_graphs_are_distinguished(monkeypatch):
    graph = CorrelationGraph.from_networkx(nx.barabasi_albert_graph(200, 3, seed=0))
    monkeypatch.setattr(module, "LARGEST_DENSE", 200)
    found = spanning_weights(graph)
    assert (found.method, found.error, found.route) == ("exact", 0.0, "exact: dense inverse of 199 vertices")
    np.testing.assert_allclose(found.weights, SpanningPlan(graph).solve().weights, rtol=1e-10)
    assert "dense inverse" not in spanning_weights(graph, "exact").route
    monkeypatch.setattr(module, "LARGEST_DENSE", 400)
    assert "dense inverse" in spanning_weights(graph, "exact").route
    monkeypatch.setattr(module, "LARGEST_DENSE", 199)
    assert "dense inverse" not in spanning_weights(graph).route


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Set the free memory of the machine and the limit of its container."""

    def arrange(free: int, limit: str | None = None, used: str = "0") -> None:
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
        monkeypatch.setattr(module, "_CGROUP", tmp_path)
        if limit is not None:
            (tmp_path / "memory.max").write_text(limit + "\n")
            (tmp_path / "memory.current").write_text(used + "\n")

    return arrange


@pytest.mark.parametrize(
    ("arrangement", "budget"),
    [
        ((1000,), 500),
        ((1000, "max"), 500),
        ((1000, "600", "200"), 200),
        ((1000, "5000", "200"), 500),
        ((1000, "600", "700"), 0),
    ],
    ids=["no container", "container without limit", "container", "wide container", "full container"],
)
def test_half_of_what_is_free(machine, arrangement, budget):
    machine(*arrangement)
    assert module.default_budget() == budget


def test_half_of_this_machine():
    assert 0 < module.default_budget() <= psutil.virtual_memory().total / 2


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1500, "1.5 kB"), (1.4e6, "1.4 MB"), (999e6, "999 MB"), (1e9, "1.0 GB"), (46.04e9, "46 GB")],
)
def test_sizes_in_words(size, words):
    assert module.format_bytes(size) == words


@pytest.fixture
def result():
    weights = np.array([0.5, 1.0, 0.25])
    weights.flags.writeable = False
    route = "exact with a dense core of 64 vertices"
    return SpanningWeights(weights=weights, method="exact", core_size=64, route=route, seconds=1.234)


def test_a_result_is_an_array_of_its_weights(result):
    assert len(result) == 3
    assert np.array_equal(np.asarray(result), [0.5, 1.0, 0.25])
    assert np.shares_memory(np.asarray(result), result.weights)
    assert np.asarray(result, dtype=np.float32).dtype == np.float32
    assert np.isclose(np.sum(result), 1.75)
    assert np.array_equal(2 * np.asarray(result), [1.0, 2.0, 0.5])


def test_a_copy_of_a_result_can_be_changed(result):
    copy = np.array(result)
    copy[0] = 9.0
    assert result.weights[0] == 0.5
    with pytest.raises(ValueError, match="copy"):
        np.asarray(result, dtype=np.float32, copy=False)


def test_the_repr_of_a_result_is_one_line(result):
    assert repr(result) == "SpanningWeights(3 edges, exact with a dense core of 64 vertices, 1.23 s)"
    many = replace(result, weights=np.ones(12_345), standard_errors=np.ones(12_345))
    assert repr(many).startswith("SpanningWeights(12,345 edges, ")
    assert "\n" not in repr(many)


def test_a_result_is_immutable(result):
    with pytest.raises(FrozenInstanceError):
        result.error = 0.1
    assert result.standard_errors is None
    assert result != replace(result)  # arrays are compared by the caller, not here


def test_a_sketch_keeps_weights_that_have_no_error():
    star, is_own = add_ground(scale_free(200), 1.0)
    conductances = np.where(is_own, 1e-12, 1.0)  # the star is nearly the only tree
    exact, sketched = (SpanningPlan(star, method=m, random_state=0).solve(conductances) for m in ("exact", "sketch"))
    assert np.allclose(sketched.weights, exact.weights, atol=1e-4)
