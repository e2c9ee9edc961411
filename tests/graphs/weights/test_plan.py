import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph, SpanningPlan, enumerate_forests, spanning_weights
from corrvae.graphs.weights import plan, sample, sketch
from corrvae.ranks import alone, current_ranks
from support.graphs import graphs
from support.resistance import conductances_of, forest_weights, from_networkx, pinv_weights, scale_free
from support.several import run_ranks
from support.unchecked import unchecked

METHODS = ["auto", "exact", "sketch", "sample"]


@given(graphs(max_vertices=6))
def test_exact_weights_are_shares_of_forests(graph):
    weights = spanning_weights(graph, "exact").weights
    assert np.allclose(weights, forest_weights(graph, enumerate_forests(graph)), atol=1e-12)


@given(graphs(max_vertices=40))
@settings(max_examples=60)
def test_exact_weights_are_resistances(graph):
    if graph.conductances is not None:  # pinv loses its digits at the range of conductances that is drawn
        graph = CorrelationGraph(graph.edges, graph.n_vertices, conductances=np.cbrt(graph.conductances))
    result = spanning_weights(graph)
    assert result.method == "exact"
    assert np.allclose(result.weights, pinv_weights(graph), atol=1e-10)
    assert np.isclose(result.weights.sum(), graph.n_vertices - graph.n_components, rtol=1e-12)
    assert np.all((result.weights > 0) & (result.weights <= 1))


@pytest.mark.parametrize("conductance_seed", [None, 1])
def test_a_dense_core_changes_nothing(conductance_seed):
    graph = scale_free(600, conductance_seed)
    result = spanning_weights(graph, "exact")
    assert result.core_size >= 64
    assert np.allclose(result.weights, pinv_weights(graph), atol=1e-11)


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
        assert np.isclose(weights.sum(), graph.n_vertices - graph.n_components, rtol=1e-9)


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
def test_ordinary_cases(method, graph):
    result = spanning_weights(graph, method, random_state=0)
    assert len(result) == graph.n_edges
    assert np.isclose(result.weights.sum(), graph.n_vertices - graph.n_components)
    assert np.allclose(result.weights, pinv_weights(graph), atol=1e-10 if result.bound == "rounding" else 0.25)


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


def test_the_memory_budget_is_respected_or_refused():
    graph = from_networkx(nx.complete_graph(1200))
    sentence = r"dense core of 1,200 vertices\) needs .* MB .* memory_budget is 70 MB; method='auto'"
    with pytest.raises(MemoryError, match=sentence):
        spanning_weights(graph, "exact", memory_budget=70e6)
    assert spanning_weights(graph, "exact", memory_budget=200e6).core_size == 1200
    with pytest.raises(MemoryError, match="the analysis of the graph needs"):
        spanning_weights(graph, memory_budget=1e6)


def test_auto_stays_within_the_budget_by_sketching():
    graph = from_networkx(nx.gnm_random_graph(5000, 60_000, seed=0))
    with pytest.raises(MemoryError, match="dense core"):
        spanning_weights(graph, "exact", memory_budget=70e6)
    tight = spanning_weights(graph, memory_budget=70e6, random_state=0)
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


def test_the_result_tells_what_was_done():
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
        ({"n_threads": 0}, "n_threads must be a whole number of at least 1, not 0"),
        ({"epsilon": "a"}, "epsilon must be a number between 0 and 1, not 'a'"),
        ({"n_threads": 1.5}, "n_threads must be a whole number of at least 1, not 1.5"),
        ({"memory_budget": np.nan}, "memory_budget must be a positive number of bytes, not nan"),
        ({"memory_budget": "1GB"}, "memory_budget must be a positive number of bytes, not '1GB'"),
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


def test_only_a_correlation_graph_will_do():
    with unchecked(), pytest.raises(TypeError, match="must be a CorrelationGraph, not Graph: make one with"):
        spanning_weights(nx.path_graph(3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("conductance", [1e308, 1e-308, 5e-324])
def test_extreme_conductances_are_scaled(method, conductance):
    graph = CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], conductances=np.full(5, conductance))
    plain = CorrelationGraph(graph.edges, 4)
    weights = [spanning_weights(each, method, random_state=0).weights for each in (graph, plain)]
    assert np.allclose(*weights, rtol=1e-12 if method != "sample" else 0.1)


def test_conductances_too_far_apart_are_refused():
    with pytest.raises(ValueError, match="differ by more than floating-point numbers can hold"):
        spanning_weights(CorrelationGraph.from_edges([(0, 1), (1, 2)], conductances=[1e308, 1e-308]))


def by_every_method(chosen):
    """Weights and standard errors by every way there is, from a seed."""
    found = []
    for graph in chosen:
        for method in ("auto", "exact", "sketch", "sample"):
            result = spanning_weights(graph, method, epsilon=0.1, random_state=3, n_threads=2, progress=False)
            found.append((result.weights, result.standard_errors, result.route))
    return found


def weights_of_ranks(chosen):
    ranks = current_ranks()
    found = by_every_method(chosen)
    # without a seed, and with generators that differ, all have what rank 0 has
    for random_state in (None, np.random.default_rng(ranks.index)):
        for method in ("sketch", "sample"):
            result = spanning_weights(chosen[0], method, epsilon=0.2, random_state=random_state, progress=False)
            theirs = ranks.gather(result.weights)
            assert all(np.array_equal(one, result.weights) for one in theirs)
    with alone():
        by_oneself = by_every_method(chosen[:1]) if ranks.is_first else None
    with pytest.raises(MemoryError, match="a sketch on"):
        spanning_weights(chosen[0], "sketch", epsilon=0.01, memory_budget=3e6, random_state=0, progress=False)
    fail_and_differ(chosen[0], ranks)
    return found, by_oneself


def fail_and_differ(graph, ranks):
    """Let one rank have more cores than the others; and let one alone run out of memory."""
    asked = {"epsilon": 0.1, "random_state": 0, "progress": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_available_cores", lambda: 1 + ranks.index)
        spanning_weights(graph, "sketch", **asked)
        for module, name, method in ((sketch, "eliminate", "sketch"), (sample, "walk_order", "sample")):
            if ranks.index == 1:
                patch.setattr(module, name, run_out)
            with pytest.raises(MemoryError, match="no room here"):
                spanning_weights(graph, method, **asked)


def run_out(*_):
    raise MemoryError("no room here")


def test_ranks_have_the_bits_that_one_has():
    chosen = [scale_free(400, 1), from_networkx(nx.barabasi_albert_graph(300, 4, seed=0), 2)]
    wanted = by_every_method(chosen)
    found = run_ranks(3, weights_of_ranks, chosen)
    for theirs, by_oneself in found:
        for results in filter(None, (theirs, by_oneself)):
            for result, result_wanted in zip(results, wanted, strict=False):
                (weights, errors, route), (wanted_weights, wanted_errors, wanted_route) = result, result_wanted
                assert route == wanted_route
                np.testing.assert_array_equal(weights, wanted_weights)
                assert (errors is None) == (wanted_errors is None)
                if errors is not None:
                    np.testing.assert_array_equal(errors, wanted_errors)
