"""Scores of links by the graph alone: how well two vertices are joined by short paths.

Every function returns a dense row for each of some vertices, with a score for every vertex of the graph, larger where a
link is likelier: take vertices in blocks where the graph is large. Conductances are not used. With A the adjacency, d
the degrees, D = diag(d) and P = D^-1 A.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.graphs.graph import CorrelationGraph

Vertices = Int[np.ndarray, " rows"]
Rows = Float[np.ndarray, "rows vertices"]

# Walks of personalised PageRank end where what is left of their weight is below this.
_NEGLIGIBLE = 1e-4
_KATZ_STEPS = 10
# Steps to the largest eigenvalue.
_POWER_STEPS = 50


def degree(graph: CorrelationGraph, vertices: Vertices) -> Rows:
    """Return the degree of every vertex, the same for each row: d_j."""
    return np.tile(graph.degrees.astype(np.float64), (len(vertices), 1))


def common_neighbors(graph: CorrelationGraph, vertices: Vertices) -> Rows:
    """Count common neighbours: A^2."""
    return _two_steps(graph, vertices, np.ones(graph.n_vertices))


def adamic_adar(graph: CorrelationGraph, vertices: Vertices) -> Rows:
    """Sum 1 / log(degree) over common neighbours: A diag(1 / log d) A."""
    # one that two vertices share has degree 2 or more
    return _two_steps(graph, vertices, 1.0 / np.log(np.maximum(graph.degrees, 2)))


def resource_allocation(graph: CorrelationGraph, vertices: Vertices) -> Rows:
    """Sum 1 / degree over common neighbours: A D^-1 A."""
    return _two_steps(graph, vertices, _inverse_degrees(graph))


def three_step_allocation(graph: CorrelationGraph, vertices: Vertices) -> Rows:
    """Sum 1 / (d_a d_b) over paths i-a-b-j of four vertices: A D^-1 A D^-1 A without walks that turn back."""
    adjacency, inverse = _adjacency(graph), _inverse_degrees(graph)
    walks = (adjacency @ (inverse * _two_steps(graph, vertices, inverse)).T).T
    # walks i-j-b-j, i-a-i-j, and i-j-i-j, which is both, need the edge ij
    around = np.asarray(adjacency @ inverse)
    turning = inverse * around + (inverse * around)[vertices, None] - inverse[vertices, None] * inverse
    walks -= adjacency[vertices].toarray() * turning
    walks[np.arange(len(vertices)), vertices] = 0.0
    return walks


def personalized_pagerank(graph: CorrelationGraph, vertices: Vertices, alpha: float = 0.5) -> Rows:
    """Return where a random walk from a vertex is that ends with probability alpha: alpha sum_k (1 - alpha)^k P^k."""
    back = sparse.csr_array(_adjacency(graph) * _inverse_degrees(graph)[None, :])  # P transposed
    here = np.zeros((graph.n_vertices, len(vertices)))
    here[vertices, np.arange(len(vertices))] = alpha
    total, left = here.copy(), 1.0
    while left > _NEGLIGIBLE:
        here, left = (1.0 - alpha) * (back @ here), (1.0 - alpha) * left
        total += here
    return total.T


def katz(graph: CorrelationGraph, vertices: Vertices, share: float = 0.5) -> Rows:
    """Count walks of up to ten steps, each step times beta: sum_k beta^k A^k.

    beta is a `share` of 1 / (largest eigenvalue of A), below which the sum over all lengths is finite.
    """
    adjacency = _adjacency(graph)
    x = np.ones(graph.n_vertices)
    for _ in range(_POWER_STEPS):  # A + 1, so that bipartite graphs converge too
        x = adjacency @ x + x
        x /= np.linalg.norm(x)
    largest = float(x @ (adjacency @ x))
    here = np.zeros((graph.n_vertices, len(vertices)))
    here[vertices, np.arange(len(vertices))] = 1.0
    total = np.zeros_like(here)
    for _ in range(_KATZ_STEPS if largest > 0.0 else 0):
        here = (share / largest) * (adjacency @ here)
        total += here
    return total.T


def _adjacency(graph: CorrelationGraph) -> sparse.csr_array:
    adjacency = sparse.csr_array(graph.to_scipy(), dtype=np.float64)
    adjacency.data[:] = 1.0
    return adjacency


def _inverse_degrees(graph: CorrelationGraph) -> Float[np.ndarray, " vertices"]:
    return 1.0 / np.maximum(graph.degrees, 1)


def _two_steps(graph: CorrelationGraph, vertices: Vertices, weights: Any) -> Rows:
    adjacency = _adjacency(graph)
    return ((adjacency[vertices] * weights[None, :]) @ adjacency).toarray()
