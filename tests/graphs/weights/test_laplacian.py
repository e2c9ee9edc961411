import networkx as nx
import numpy as np
import pytest

from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.graphs.weights import laplacian as module
from corrvae.graphs.weights.kernels.projection import WIDTH
from corrvae.graphs.weights.laplacian import LaplacianSolver
from corrvae.graphs.weights.progress import Monitor
from support.resistance import conductances_of, from_networkx, laplacian, potentials, scale_free


def solver_of(graph: CorrelationGraph) -> LaplacianSolver:
    i, j = graph.edges.T.astype(np.int32)
    return LaplacianSolver(i.copy(), j.copy(), conductances_of(graph), graph.n_vertices, Monitor())


def right_side(graph: CorrelationGraph) -> np.ndarray:
    """B' W^1/2 s for random signs, as the sketch has it."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(graph.n_edges, WIDTH))
    signs *= np.sqrt(conductances_of(graph))[:, None]
    right = np.zeros((graph.n_vertices, WIDTH))
    np.add.at(right, graph.edges[:, 0], signs)
    np.add.at(right, graph.edges[:, 1], -signs)
    return right


def communities() -> dict[str, CorrelationGraph]:
    """Graphs whose weakest links hardly show in the residual."""
    barbell = nx.disjoint_union(nx.complete_graph(60), nx.complete_graph(60))
    barbell.add_edges_from([(0, 60), (1, 61)])
    ring = nx.disjoint_union_all([nx.random_regular_graph(14, 30, seed=k) for k in range(20)])
    ring.add_edges_from([(30 * k, (30 * (k + 1) + 7) % 600) for k in range(20)])
    blocks = np.full((4, 4), 0.002) + 0.3 * np.eye(4)
    weak = nx.disjoint_union(nx.random_regular_graph(20, 100, seed=0), nx.random_regular_graph(20, 100, seed=1))
    weak.add_edges_from([(k, 100 + k) for k in range(5)])
    edges = np.array(weak.edges())
    across = (edges[:, 0] < 100) != (edges[:, 1] < 100)
    return {
        "barbell": from_networkx(barbell),
        "caveman": from_networkx(nx.connected_caveman_graph(12, 30)),
        "blocks": from_networkx(nx.stochastic_block_model([100] * 4, blocks.tolist(), seed=0)),
        "ring": from_networkx(ring),
        "weak links": CorrelationGraph.from_edges(edges, conductances=np.where(across, 1e-8, 1.0)),
        "wild": from_networkx(nx.gnm_random_graph(150, 2000, seed=1), seed=4),
        "scale-free": scale_free(300),
        "grid": from_networkx(nx.grid_2d_graph(12, 12)),
        "pieces": from_networkx(nx.disjoint_union(nx.complete_graph(6), nx.cycle_graph(11)), seed=1),
    }


@pytest.mark.parametrize("name", communities())
def test_solutions_are_right_across_every_edge(name):
    graph = communities()[name]
    solver, right = solver_of(graph), right_side(graph)
    assert np.allclose(solver.laplacian.toarray(), laplacian(graph), rtol=1e-6)
    x, converged = solver.solve(right.astype(solver.dtype), Monitor())
    assert converged
    expected = potentials(graph, right)
    i, j = graph.edges.T
    off = np.sqrt(conductances_of(graph))[:, None] * ((x[i] - x[j]) - (expected[i] - expected[j]))
    assert np.abs(off).max() < 2 * module._ERROR


@pytest.mark.parametrize("name", communities())
def test_the_smallest_eigenvalue_is_found_to_a_factor(name):
    graph = communities()[name]
    matrix = laplacian(graph)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    eigenvalues = np.linalg.eigvalsh(matrix * np.outer(scale, scale))
    smallest = eigenvalues[graph.n_connected]
    assert 0.4 * smallest <= solver_of(graph).smallest_eigenvalue <= 1.2 * smallest


def test_well_connected_graphs_take_single_precision_and_others_double():
    assert solver_of(scale_free(300)).dtype == np.float32
    assert solver_of(communities()["barbell"]).dtype == np.float64
    assert solver_of(communities()["weak links"]).dtype == np.float64


@pytest.mark.parametrize("name", ["barbell", "caveman", "blocks", "ring", "weak links", "wild"])
def test_the_sketch_keeps_its_promise_between_communities(name):
    graph = communities()[name]
    truth = spanning_weights(graph, "exact").weights
    n_seeds, missed = 20, np.zeros(graph.n_edges)
    for seed in range(n_seeds):
        result = spanning_weights(graph, "sketch", random_state=seed, delta=0.1)
        missed += np.abs(result.weights - truth) > result.error
    # each edge may miss with probability 0.1; the worst of thousands of edges in 20 draws
    assert missed.max() <= 9
    assert missed.mean() / n_seeds < 0.05
