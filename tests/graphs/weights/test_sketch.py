import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.special import ndtri

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.cuts import cut_low_degrees
from corrvae.graphs.weights.kernels.projection import WIDTH
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.graphs.weights.sketch import solve_sketch
from corrvae.monitor import Cancelled, Monitor
from support.resistance import conductances_of, from_networkx, pinv_weights, scale_free


def structure_of(graph: CorrelationGraph):
    """Low degrees eliminated, as before every sketch."""
    pieces, monitor = split_into_pieces(graph), Monitor()
    assert not pieces.is_bridge.any()
    ordering = order_pieces(pieces, monitor)
    cuts = cut_low_degrees(pieces, ordering)
    return build_structure(pieces, ordering, np.arange(cuts.core_sizes.size), cuts.n_eliminated, monitor)


def sketched(graph: CorrelationGraph, seed=0, epsilon=0.1, require_memory=lambda n: None, monitor=None, n_threads=2):
    return solve_sketch(
        structure_of(graph),
        conductances_of(graph),
        epsilon=epsilon,
        delta=0.05,
        random_state=np.random.default_rng(seed),
        n_threads=n_threads,
        require_memory=require_memory,
        monitor=monitor or Monitor(),
    )


@pytest.mark.parametrize("conductance_seed", [None, 3])
def test_resistances_are_those_of_pinv_within_their_errors(conductance_seed):
    graph = scale_free(500, conductance_seed)
    truth = pinv_weights(graph)
    sketch = sketched(graph, epsilon=0.05)
    assert sketch.converged
    assert 0 < sketch.core_size < 500
    assert np.all(sketch.standard_errors > 0)
    scores = (conductances_of(graph) * sketch.resistances - truth) / sketch.standard_errors
    assert np.abs(scores).max() < 6
    assert np.sqrt(np.mean(scores**2)) < 1.2


def test_the_mean_over_seeds_is_the_truth():
    graph = scale_free(200, 1)
    truth = pinv_weights(graph)
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
    assert np.abs(conductances_of(graph) * finer.resistances - pinv_weights(graph)).mean() < epsilon / 4


def test_pieces_are_sketched_together():
    # every vertex has too many neighbours to be eliminated
    parts = [nx.random_regular_graph(16, 80, seed=1), nx.random_regular_graph(20, 60, seed=2)]
    graph = from_networkx(nx.disjoint_union_all(parts))
    sketch = sketched(graph)
    assert sketch.core_size == 140
    assert np.abs(sketch.resistances - pinv_weights(graph)).max() < 6 * sketch.standard_errors.max()


def test_an_edge_with_fill_beside_it_shares_its_resistance():
    # two hubs of a core, joined by an edge and by many paths that are eliminated first
    core = nx.complete_graph(20)
    core.add_edges_from((end, 20 + k) for k in range(40) for end in (0, 1))
    graph = from_networkx(core)
    truth = pinv_weights(graph)
    sketch = sketched(graph, epsilon=0.01)
    assert sketch.core_size <= 20
    assert np.allclose(sketch.resistances, truth, atol=0.02)


def test_the_same_for_any_number_of_threads():
    graph = scale_free(300)
    assert np.array_equal(sketched(graph, n_threads=1).resistances, sketched(graph, n_threads=3).resistances)


def test_memory_is_asked_for_before_it_is_used():
    def refuse(n_projections: int) -> None:
        raise MemoryError(f"{n_projections} projections")

    with pytest.raises(MemoryError, match="projections"):
        sketched(scale_free(300), epsilon=0.02, require_memory=refuse)


def test_an_impossible_epsilon_gets_a_sentence():
    with pytest.raises(ValueError, match=r"epsilon=0.0001 needs [\d,]+ projections; ask for at least 0\.0\d+, or"):
        sketched(scale_free(300), epsilon=1e-4)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read as Linux has it")
def test_the_announced_memory_covers_what_is_used():
    """A dense core and many projections, in a process of its own."""
    script = """
from pathlib import Path
import numpy as np
from corrvae.graphs import CorrelationGraph, SpanningPlan
from corrvae.graphs.weights.pattern import pattern_bytes
from corrvae.graphs.weights.sketch import sketch_bytes

def graph(n, m):
    pairs = np.random.default_rng(0).integers(0, n, size=(m, 2))
    return CorrelationGraph(np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0), n)

def kilobytes(field):
    return int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0])

SpanningPlan(graph(200, 3000), method="sketch", random_state=0).solve()  # loads and compiles everything
large = graph(3000, 300_000)
Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
before = kilobytes("VmRSS")
plan = SpanningPlan(large, method="sketch", random_state=0, n_threads=2)
result = plan.solve()
announced = pattern_bytes(large) + sketch_bytes(plan._sketch, result.n_draws, 2)
print(1024 * (kilobytes("VmHWM") - before), announced)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    used, announced = map(float, done.stdout.split())
    assert 0.1 * announced < used <= announced


def test_a_solve_that_does_not_converge_is_reported(monkeypatch):
    monkeypatch.setattr("corrvae.graphs.weights.laplacian._MAX_ITERATIONS", 1)
    assert not sketched(scale_free(300)).converged


def test_stops_when_asked():
    monitor = Monitor()
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        sketched(scale_free(100), monitor=monitor)
