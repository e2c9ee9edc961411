import networkx as nx
import numpy as np
import pytest
from scipy.special import ndtri

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights import sketch as module
from corrvae.graphs.weights.cuts import cut_low_degrees
from corrvae.graphs.weights.kernels.projection import WIDTH
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.graphs.weights.sketch import sketch_bytes, solve_sketch
from corrvae.monitor import Cancelled, Monitor
from support.resistance import conductances_of, from_networkx, laplacian, pinv_weights, scale_free


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


def test_the_announced_memory_covers_what_is_alive_at_once():
    structure = structure_of(scale_free(2000))
    core_size = structure.columns.size - 1 - structure.first
    for n_projections in (64, 640):
        columns = 2 * 8 * structure.columns[-1]  # conductances, and resistances on the way back
        points = 2 * 4 * core_size * n_projections  # in blocks, and side by side
        assert sketch_bytes(structure, n_projections, 1) >= columns + points
    assert sketch_bytes(structure, 64, 2) > sketch_bytes(structure, 64, 1)


def right_side(graph: CorrelationGraph) -> np.ndarray:
    """Random columns that sum to zero over each component."""
    normal = np.random.default_rng(0).normal(size=(graph.n_vertices, WIDTH))
    for component in np.unique(graph.components):
        mine = graph.components == component
        normal[mine] -= normal[mine].mean(axis=0)
    return normal.astype(np.float32)


def solved(graph: CorrelationGraph, right: np.ndarray) -> tuple[np.ndarray, bool]:
    i, j = graph.edges.T.astype(np.int32)
    matrix = module._laplacian(module._Core(i.copy(), j.copy(), conductances_of(graph), graph.n_vertices))
    assert np.allclose(matrix.toarray(), laplacian(graph), rtol=1e-6)
    return module._conjugate_gradients(matrix, np.float32(1.0) / matrix.diagonal(), right.copy(), Monitor())


@pytest.mark.parametrize(
    "graph",
    [
        scale_free(300, 4),
        from_networkx(nx.grid_2d_graph(12, 12)),
        from_networkx(nx.disjoint_union(nx.complete_graph(6), nx.cycle_graph(11)), seed=1),
    ],
    ids=["scale-free", "grid", "pieces"],
)
def test_conjugate_gradients_solve_the_laplacian(graph, monkeypatch):
    monkeypatch.setattr(module, "_TOLERANCE", 1e-6)
    right = right_side(graph)
    x, converged = solved(graph, right)
    assert converged
    assert np.allclose(laplacian(graph) @ x, right, atol=1e-4)
    expected = np.linalg.lstsq(laplacian(graph), right.astype(float))[0]
    i, j = graph.edges.T
    assert np.allclose(x[i] - x[j], expected[i] - expected[j], atol=1e-3)


@pytest.mark.parametrize(
    ("graph", "n_eigenvalues"),
    [(nx.complete_graph(9), 1), (nx.complete_bipartite_graph(4, 7), 2), (nx.cycle_graph(20), 10)],
    ids=["complete", "bipartite", "cycle"],
)
def test_as_many_iterations_as_there_are_eigenvalues(graph, n_eigenvalues, monkeypatch):
    monkeypatch.setattr(module, "_TOLERANCE", 1e-3)
    graph = from_networkx(graph)
    monkeypatch.setattr(module, "_MAX_ITERATIONS", n_eigenvalues)
    assert solved(graph, right_side(graph))[1]
    monkeypatch.setattr(module, "_MAX_ITERATIONS", n_eigenvalues - 1)
    assert not solved(graph, right_side(graph))[1]


def test_solves_stop_at_their_tolerance():
    graph = scale_free(500)
    right = right_side(graph)
    x, converged = solved(graph, right)
    assert converged
    degrees = np.diag(laplacian(graph))[:, None]
    residual = right - laplacian(graph) @ x
    norms = np.sqrt((residual**2 / degrees).sum(axis=0) / (right**2 / degrees).sum(axis=0))
    assert np.all(norms < 1.01 * module._TOLERANCE)
    assert norms.max() > 0.01 * module._TOLERANCE


def test_a_solve_that_does_not_converge_is_reported(monkeypatch):
    monkeypatch.setattr(module, "_MAX_ITERATIONS", 1)
    assert not sketched(scale_free(300)).converged


def test_stops_when_asked():
    monitor = Monitor()
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        sketched(scale_free(100), monitor=monitor)
