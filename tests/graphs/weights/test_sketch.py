import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtri

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels.ordering import LARGEST_DEGREE, cut_at_degree
from corrvae.graphs.weights.kernels.projection import WIDTH
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.graphs.weights.progress import Cancelled, Monitor
from corrvae.graphs.weights.sketch import restore_sum, shorted_weights, sketch_bytes, solve_sketch
from support.elimination import conductance_matrix, exact_resistances
from support.forests import enumerate_forests
from support.graphs import graphs
from support.resistance import conductances_of, forest_weights, from_networkx, scale_free, solved_weights


def structure_of(graph: CorrelationGraph):
    """Low degrees eliminated, as before every sketch."""
    pieces, monitor = split_into_pieces(graph), Monitor()
    assert not pieces.is_bridge.any()
    ordering = order_pieces(pieces, monitor)
    cuts = cut_at_degree(pieces.starts, ordering, LARGEST_DEGREE)
    return build_structure(pieces, ordering, np.arange(cuts.core_sizes.size), cuts.n_eliminated, monitor)


def sketched(graph, seed=0, epsilon=0.1, require_memory=lambda n: None, monitor=None, n_threads=2, structure=None):
    return solve_sketch(
        structure or structure_of(graph),
        conductances_of(graph),
        epsilon=epsilon,
        delta=0.05,
        random_state=np.random.default_rng(seed),
        n_threads=n_threads,
        require_memory=require_memory,
        monitor=monitor or Monitor(),
    )


@pytest.mark.parametrize("conductance_seed", [None, 3])
def test_resistances_are_right_within_their_errors(conductance_seed):
    graph = scale_free(500, conductance_seed)
    truth = solved_weights(graph)
    sketch = sketched(graph, epsilon=0.05)
    assert sketch.converged
    assert 0 < structure_of(graph).core_size < 500
    assert np.all(sketch.standard_errors > 0)
    scores = (conductances_of(graph) * sketch.resistances - truth) / sketch.standard_errors
    assert np.abs(scores).max() < 6
    assert np.sqrt(np.mean(scores**2)) < 1.2


def test_the_mean_over_seeds_is_the_truth():
    graph = scale_free(200, 1)
    truth = solved_weights(graph)
    runs = np.array([conductances_of(graph) * sketched(graph, seed, n_threads=1).resistances for seed in range(40)])
    errors = runs.std(axis=0) / np.sqrt(len(runs))
    assert np.abs((runs.mean(axis=0) - truth) / np.maximum(errors, 1e-3)).max() < 5
    assert np.abs(runs.mean() - truth.mean()) < 1e-3


@pytest.mark.parametrize("epsilon", [0.2, 0.1, 0.05])
def test_as_many_projections_as_epsilon_asks_for(epsilon):
    graph = scale_free(400)
    quantile = ndtri(0.975)
    asked = []
    sketch = sketched(graph, epsilon=epsilon, require_memory=asked.append)
    assert quantile * sketch.standard_errors.max() <= epsilon
    assert sketch.n_projections % WIDTH == 0
    assert asked[-1:] in ([sketch.n_projections], [])
    finer = sketched(graph, epsilon=epsilon / 2)
    assert finer.n_projections > 2 * sketch.n_projections or sketch.n_projections == 2 * WIDTH
    assert np.abs(conductances_of(graph) * finer.resistances - solved_weights(graph)).mean() < epsilon / 4


def test_pieces_are_sketched_together():
    # every vertex has too many neighbours to be eliminated
    parts = [nx.random_regular_graph(16, 80, seed=1), nx.random_regular_graph(20, 60, seed=2)]
    graph = from_networkx(nx.disjoint_union_all(parts))
    sketch = sketched(graph)
    assert structure_of(graph).core_size == 140
    assert np.abs(sketch.resistances - solved_weights(graph)).max() < 6 * sketch.standard_errors.max()


def test_an_edge_with_fill_beside_it_shares_its_resistance():
    # two hubs of a core, joined by an edge and by many paths that are eliminated first
    core = nx.complete_graph(20)
    core.add_edges_from((end, 20 + k) for k in range(40) for end in (0, 1))
    graph = from_networkx(core)
    truth = solved_weights(graph)
    sketch = sketched(graph, epsilon=0.01)
    assert structure_of(graph).core_size <= 20
    assert np.allclose(sketch.resistances, truth, atol=0.02)


def test_the_same_for_any_number_of_threads():
    graph = scale_free(300)
    assert np.array_equal(sketched(graph, n_threads=1).resistances, sketched(graph, n_threads=3).resistances)


def test_memory_is_asked_for_before_it_is_used():
    def fail(n_projections: int) -> None:
        raise MemoryError(f"{n_projections} projections")

    with pytest.raises(MemoryError, match="projections"):
        sketched(scale_free(300), epsilon=0.02, require_memory=fail)


def test_an_impossible_epsilon_gets_a_sentence():
    with pytest.raises(ValueError, match=r"epsilon=0.0001 needs [\d,]+ projections; ask for at least 0\.0\d+, or"):
        sketched(scale_free(300), epsilon=1e-4)


def test_the_announced_memory_covers_what_numpy_allocates():
    graph = from_networkx(nx.gnm_random_graph(1000, 40_000, seed=0))
    sketched(graph)  # loads and compiles everything
    structure = structure_of(graph)
    tracemalloc.start()
    sketch = sketched(graph, structure=structure)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    announced = sketch_bytes(structure, sketch.n_projections, 2)
    assert 0.1 * announced < used <= announced


def test_a_solve_that_does_not_converge_is_reported(monkeypatch):
    monkeypatch.setattr("corrvae.graphs.weights.laplacian._MAX_ITERATIONS", 1)
    assert not sketched(scale_free(300)).converged


def test_stops_when_asked():
    monitor = Monitor()
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        sketched(scale_free(100), monitor=monitor)


@given(graphs(max_vertices=6))
def test_shorting_gives_a_lower_bound(graph):
    lower = shorted_weights(graph.edges, conductances_of(graph), graph.n_vertices)
    assert np.all(lower > 0)
    assert np.all(lower <= forest_weights(graph, enumerate_forests(graph)) * (1 + 1e-9))


@given(graphs(max_vertices=8, min_vertices=3))
@settings(max_examples=50)
def test_shorting_joins_all_other_vertices(graph):
    conductances = conductances_of(graph)
    lower = shorted_weights(graph.edges, conductances, graph.n_vertices)
    full = conductance_matrix(graph)
    for e, (i, j) in enumerate(graph.edges):
        others = [v for v in range(graph.n_vertices) if v not in (i, j)]
        to_others = full[[i, j]][:, others].sum(axis=1)
        joined = np.array([[0, full[i, j], to_others[0]], [full[i, j], 0, to_others[1]], [*to_others, 0]])
        expected = conductances[e] * exact_resistances(joined)[0, 1] if to_others.any() else 1.0
        assert np.isclose(lower[e], expected, rtol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.floats(0.05, 0.95))
def test_the_nearest_estimates_with_the_right_sum(seed, n, where):
    generator = np.random.default_rng(seed)
    lower = generator.uniform(0.01, 0.4, n)
    weights = generator.uniform(lower, 1.0)
    variances = generator.uniform(0.1, 2.0, n)
    total = lower.sum() + where * (n - lower.sum())
    found = restore_sum(weights, variances, lower, total)
    # the nearest point moves each weight in proportion to its variance until it meets a bound
    shift = brentq(lambda t: np.clip(weights + t * variances, lower, 1.0).sum() - total, -20.0, 20.0, xtol=1e-14)
    assert np.isclose(found.sum(), total, rtol=1e-10)
    assert np.allclose(found, np.clip(weights + shift * variances, lower, 1.0), atol=1e-8)


def test_what_is_known_exactly_does_not_move():
    weights, variances = np.array([0.3, 0.9, 0.5]), np.array([0.0, 1.0, 1.0])
    found = restore_sum(weights, variances, np.zeros(3), 2.0)
    assert found[0] == 0.3
    assert np.allclose(found, [0.3, 1.0, 0.7])


def test_estimates_out_of_range_are_brought_back():
    found = restore_sum(np.array([1.4, -0.2, 0.5]), np.ones(3), np.full(3, 0.1), 1.6)
    assert np.array_equal(found, [1.0, 0.1, 0.5])


@pytest.mark.parametrize("total", [-1.0, 10.0])
def test_a_sum_out_of_reach_ends_at_the_bounds(total):
    lower = np.full(4, 0.2)
    found = restore_sum(np.full(4, 0.5), np.ones(4), lower, total)
    assert np.array_equal(found, np.ones(4) if total > 0 else lower)
