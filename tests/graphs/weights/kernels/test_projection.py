import networkx as nx
import numpy as np

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels import projection
from support.resistance import conductances_of, from_networkx, potentials, solved_weights

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
    x = potentials(tree, projected(tree, 7))
    linear, quadratic = projection.read_signs_and_squares(*ends_and_roots(tree), np.uint64(7), x.astype(np.float32))
    assert np.allclose(linear, WIDTH, rtol=1e-3)  # a tree's projection is the identity: y = s
    assert np.allclose(quadratic, WIDTH, rtol=1e-3)
    linear, _ = projection.read_signs_and_squares(*ends_and_roots(tree), np.uint64(8), x.astype(np.float32))
    assert np.abs(linear).max() < WIDTH  # other signs


def test_both_readings_average_to_the_weights():
    graph = from_networkx(nx.compose(nx.complete_graph(5), nx.cycle_graph(range(4, 9))), seed=3)
    truth = solved_weights(graph)
    n_keys = 400
    readings = np.zeros((2, n_keys, graph.n_edges))
    keys = np.random.default_rng(0).integers(0, 2**63, n_keys)
    for k, key in enumerate(keys):
        x = potentials(graph, projected(graph, key)).astype(np.float32)
        readings[:, k] = projection.read_signs_and_squares(*ends_and_roots(graph), np.uint64(key), x)
    means = readings.mean(axis=1) / WIDTH
    errors = readings.std(axis=1) / WIDTH / np.sqrt(n_keys)
    assert np.all(np.abs(means - truth) < 4.5 * errors + 1e-5)
    # the other signs that a sign meets: the rest of the projection's row, whose squares sum to p - p^2
    v = truth * (1 - truth)
    assert np.allclose(errors[0] * np.sqrt(n_keys * WIDTH), np.sqrt(v), rtol=0.2)


def test_steps_of_the_descent_are_those_of_the_formulas():
    generator = np.random.default_rng(4)
    x, residual, direction, image = (generator.normal(size=(50, WIDTH)).astype(np.float32) for _ in range(4))
    inverse_degrees = generator.uniform(0.1, 1.0, 50).astype(np.float32)
    scaled = residual * inverse_degrees[:, None]

    assert np.allclose(projection.column_products(direction, image), (direction * image).sum(axis=0), atol=1e-4)

    share = generator.uniform(size=WIDTH).astype(np.float32)
    turned = direction.copy()
    projection.next_direction(share, residual, inverse_degrees, turned)
    assert np.allclose(turned, scaled + share * direction, atol=1e-5)

    moved, rest = x.copy(), residual.copy()
    norms = projection.descend(share, direction, image, moved, rest, inverse_degrees)
    assert np.allclose(moved, x + share * direction, atol=1e-5)
    assert np.allclose(rest, residual - share * image, atol=1e-5)
    assert np.allclose(norms, (rest.astype(float) ** 2 * inverse_degrees[:, None]).sum(axis=0), rtol=1e-5)
