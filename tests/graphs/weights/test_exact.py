from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.graphs.weights import exact
from corrvae.graphs.weights.exact import build_structures, invert_core, solve_exact
from corrvae.graphs.weights.kernels.ordering import choose_cuts
from corrvae.graphs.weights.pattern import order_pieces, split_into_pieces
from corrvae.graphs.weights.progress import Cancelled, Monitor
from support.elimination import (
    conductance_matrix,
    exact_log_forests,
    exact_resistances,
    matrix_resistances,
    structure_of,
)
from support.resistance import conductances_of, from_networkx, scale_free, solved_weights, two_communities


def random_core(k: int, seed: int = 0, spread: float = 1.0) -> np.ndarray:
    core = np.triu(10.0 ** np.random.default_rng(seed).uniform(-spread, spread, (k, k)), 1)
    return core + core.T


@pytest.fixture
def meshes(monkeypatch):
    """The cores that went through star-mesh elimination."""
    seen, to_the_end = [], exact._to_the_end

    def noted(structure):
        seen.append(structure.core_size)
        return to_the_end(structure)

    monkeypatch.setattr(exact, "_to_the_end", noted)
    return seen


@pytest.mark.parametrize("k", [1, 2, 3, 17, 100, 200])
def test_a_core_becomes_its_resistances(k, meshes):
    core = random_core(k)
    expected = matrix_resistances(core)
    invert_core(core, Monitor())
    assert np.allclose(core, expected, rtol=1e-10, atol=1e-14)
    assert not meshes


def test_a_sparse_core_becomes_its_resistances(meshes):
    core = conductance_matrix(from_networkx(nx.cycle_graph(100)))
    invert_core(core, Monitor())
    distance = np.abs(np.subtract.outer(np.arange(100), np.arange(100)))
    assert np.allclose(core, distance * (100 - distance) / 100, rtol=1e-10, atol=1e-12)
    assert not meshes


def solve_as_core(graph: CorrelationGraph) -> tuple[np.ndarray, float]:
    """Resistances across the edges, and log Z, of a graph of which nothing is eliminated before its core."""
    structure = structure_of(graph, np.arange(graph.n_vertices, dtype=np.int32), 0)
    return solve_exact([structure], conductances_of(graph), 1, Monitor())


@pytest.mark.parametrize("seed", range(4))
def test_weights_keep_seven_digits_at_any_scaling(seed):
    core = random_core(7, seed, spread=6.0)
    i, j = np.triu_indices(7, 1)
    found, _ = solve_as_core(CorrelationGraph(np.stack([i, j], axis=1), 7, conductances=core[i, j]))
    # less, and star-mesh takes over
    assert np.allclose(core[i, j] * found, (core * exact_resistances(core))[i, j], rtol=0.0, atol=1e-7)


def test_a_badly_scaled_core_keeps_its_digits(meshes):
    graph = two_communities(5)
    core = conductance_matrix(graph)
    found, log_z = solve_as_core(graph)
    assert meshes == [10]
    assert np.isclose(log_z, exact_log_forests(core), rtol=1e-12)
    assert np.allclose(found, exact_resistances(core)[tuple(graph.edges.T)], rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("n_vertices", [60, 80, 100])
def test_two_communities_keep_ten_digits(n_vertices, meshes):
    graph = two_communities(n_vertices)
    within = conductances_of(graph) > 1.0
    expected = np.where(within, 2 / n_vertices, 1 / 3)
    assert np.allclose(spanning_weights(graph, "exact").weights, expected, rtol=1e-10, atol=0.0)

    meshes.clear()
    found, _ = solve_as_core(graph)
    assert meshes == [2 * n_vertices]
    assert np.allclose(graph.conductances * found, expected, rtol=1e-10, atol=0.0)


def test_pieces_without_a_core_share_a_structure():
    graphs = [nx.complete_graph(90), nx.cycle_graph(30), nx.complete_graph(100), nx.complete_graph(4)]
    graph = from_networkx(nx.disjoint_union_all(graphs), seed=1)
    pieces, monitor = split_into_pieces(graph), Monitor()
    ordering = order_pieces(pieces, monitor)
    cuts = choose_cuts(pieces.starts, ordering, np.inf)
    structures = build_structures(pieces, ordering, cuts, np.arange(4), monitor)
    assert [structure.core_size for structure in structures] == [0, 90, 100]
    assert sorted(np.concatenate([structure.later_edges for structure in structures])) == list(range(graph.n_edges))

    truth = solved_weights(graph) / graph.conductances
    for structure in structures:  # each writes its own edges only
        resistances, _ = solve_exact([structure], graph.conductances, 1, monitor)
        mine = np.zeros(graph.n_edges, bool)
        mine[structure.later_edges] = True
        assert np.allclose(resistances[mine], truth[mine], rtol=1e-9)
        assert np.all(resistances[~mine] == 0.0)
    assert np.allclose(solve_exact(structures, graph.conductances, 1, monitor)[0], truth, rtol=1e-9)
    without = build_structures(pieces, ordering, cuts, np.array([0, 2]), monitor)
    assert len(without) == 2


def test_an_interrupted_solution_is_not_used():
    monitor = Monitor()
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        invert_core(random_core(50), monitor)


def test_threads_are_left_as_they_were_by_callers_at_the_same_time():
    def counts() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    graph = scale_free(500, 1)
    np.linalg.inv(random_core(3))
    before = counts()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: spanning_weights(graph, "exact", n_threads=1).weights, range(8)))
    assert counts() == before
    assert all(np.array_equal(weights, results[0]) for weights in results)
