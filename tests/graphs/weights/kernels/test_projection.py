import networkx as nx
import numpy as np
import pytest

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels import projection
from support.elimination import conductance_matrix, lists_of, no_control, star_mesh, structure_of
from support.resistance import conductances_of, from_networkx, laplacian, pinv_weights, scale_free

WIDTH = projection.WIDTH


def ends_and_roots(graph: CorrelationGraph):
    tails, heads = graph.edges.T.astype(np.int32)
    return tails.copy(), heads.copy(), np.sqrt(conductances_of(graph)).astype(np.float32)


def scaled_incidence(graph: CorrelationGraph) -> np.ndarray:
    """W^1/2 B, with +1 at the tail and -1 at the head."""
    matrix = np.zeros((graph.n_edges, graph.n_vertices))
    rows = np.arange(graph.n_edges)
    roots = np.sqrt(conductances_of(graph))
    matrix[rows, graph.edges[:, 0]] = roots
    matrix[rows, graph.edges[:, 1]] = -roots
    return matrix


def projected(graph: CorrelationGraph, key: int) -> np.ndarray:
    out = np.full((graph.n_vertices, WIDTH), np.nan, np.float32)
    projection.project(*ends_and_roots(graph), np.uint64(key), out)
    return out


def solved(graph: CorrelationGraph, right: np.ndarray, tolerance=1e-6, max_iterations=5000, control=None):
    pointers, neighbors, edge_of = lists_of(graph)
    values = conductances_of(graph).astype(np.float32)[edge_of]
    degrees = np.diag(laplacian(graph)).astype(np.float32)
    control = no_control() if control is None else control
    return projection.conjugate_gradients(
        pointers, neighbors, values, degrees, right.copy(), tolerance, max_iterations, control
    )


def test_projections_are_sums_of_random_signs():
    tree = from_networkx(nx.random_labeled_tree(200, seed=1), seed=2)
    # on a tree the incidence matrix can be undone, so the signs can be seen
    signs = np.linalg.lstsq(scaled_incidence(tree).T, projected(tree, 12345).astype(float))[0]
    assert np.allclose(np.abs(signs), 1.0, atol=1e-3)
    signs = np.sign(signs)
    assert abs(signs.mean()) < 4 / np.sqrt(signs.size)
    correlations = np.corrcoef(signs.T)[np.triu_indices(WIDTH, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(tree.n_edges)
    assert not np.array_equal(projected(tree, 12345), projected(tree, 12346))
    assert np.array_equal(projected(tree, 12345), projected(tree, 12345))


def test_the_same_signs_are_read_back():
    tree = from_networkx(nx.random_labeled_tree(50, seed=1), seed=2)
    x = np.linalg.pinv(laplacian(tree)) @ projected(tree, 7)
    linear, quadratic = projection.read_signs_and_squares(*ends_and_roots(tree), np.uint64(7), x.astype(np.float32))
    assert np.allclose(linear, WIDTH, rtol=1e-3)  # a tree's projection is the identity: y = s
    assert np.allclose(quadratic, WIDTH, rtol=1e-3)
    linear, _ = projection.read_signs_and_squares(*ends_and_roots(tree), np.uint64(8), x.astype(np.float32))
    assert np.abs(linear).max() < WIDTH  # other signs


def test_both_readings_average_to_the_weights():
    graph = from_networkx(nx.compose(nx.complete_graph(5), nx.cycle_graph(range(4, 9))), seed=3)
    truth = pinv_weights(graph)
    inverse = np.linalg.pinv(laplacian(graph))
    n_keys = 400
    readings = np.zeros((2, n_keys, graph.n_edges))
    keys = np.random.default_rng(0).integers(0, 2**63, n_keys)
    for k, key in enumerate(keys):
        x = (inverse @ projected(graph, key)).astype(np.float32)
        readings[:, k] = projection.read_signs_and_squares(*ends_and_roots(graph), np.uint64(key), x)
    means = readings.mean(axis=1) / WIDTH
    errors = readings.std(axis=1) / WIDTH / np.sqrt(n_keys)
    assert np.all(np.abs(means - truth) < 4.5 * errors + 1e-5)
    # the other signs that a sign meets: the rest of the projection's row, whose squares sum to p - p^2
    v = truth * (1 - truth)
    assert np.allclose(errors[0] * np.sqrt(n_keys * WIDTH), np.sqrt(v), rtol=0.2)


@pytest.mark.parametrize(
    "graph",
    [scale_free(300), scale_free(300, 4), from_networkx(nx.grid_2d_graph(12, 12)), from_networkx(nx.complete_graph(9))],
    ids=["scale-free", "weighted", "grid", "complete"],
)
def test_conjugate_gradients_solve_the_laplacian(graph):
    right = projected(graph, 3)
    control = no_control()
    x, iterations, converged = solved(graph, right, control=control)
    assert converged
    assert control.tolist() == [0, iterations]
    expected = np.linalg.pinv(laplacian(graph)) @ right
    found = x - x.mean(axis=0)
    assert np.allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_pieces_are_solved_side_by_side():
    graph = from_networkx(nx.disjoint_union(nx.complete_graph(6), nx.cycle_graph(11)), seed=1)
    right = projected(graph, 3)
    x, _, converged = solved(graph, right)
    assert converged
    assert np.allclose(laplacian(graph) @ x, right, atol=1e-4)


def test_looser_solves_stop_earlier_at_their_tolerance():
    graph = scale_free(500)
    right = projected(graph, 3)
    x, iterations, converged = solved(graph, right, tolerance=1e-2)
    assert converged
    assert iterations < solved(graph, right, tolerance=1e-5)[1]
    degrees = np.diag(laplacian(graph))[:, None]
    residual = right - laplacian(graph) @ x
    norms = np.sqrt((residual**2 / degrees).sum(axis=0) / (right**2 / degrees).sum(axis=0))
    assert np.all(norms < 1.01e-2)
    assert norms.max() > 1e-4


def test_what_does_not_converge_says_so():
    graph = from_networkx(nx.cycle_graph(300))
    _, iterations, converged = solved(graph, projected(graph, 1), max_iterations=5)
    assert (iterations, converged) == (5, False)
    x, _, converged = solved(graph, projected(graph, 1), control=np.array([1, 0]))
    assert not converged
    assert not x.any()


def test_exact_parts_are_inverse_sums_of_the_eliminated_ends():
    graph = scale_free(60, 2)
    order = np.random.default_rng(0).permutation(60).astype(np.int32)
    structure = structure_of(graph, order, 25)
    mesh = star_mesh(conductance_matrix(graph, order), 25)
    sums = np.array([mesh[v, v + 1 :].sum() for v in range(25)])
    out = np.zeros(graph.n_edges)
    projection.exact_parts(structure, 1.0 / sums, out)
    earlier = np.argsort(order)[graph.edges].min(axis=1)
    assert np.allclose(out, np.where(earlier < 25, 1.0 / sums[np.minimum(earlier, 24)], 0.0))
