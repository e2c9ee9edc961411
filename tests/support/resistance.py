"""Independent computations of spanning weights, and graphs with a known structure."""

import networkx as nx
import numpy as np

from corrvae.graphs import CorrelationGraph


def conductances_of(graph: CorrelationGraph) -> np.ndarray:
    return np.ones(graph.n_edges) if graph.conductances is None else graph.conductances


def laplacian(graph: CorrelationGraph) -> np.ndarray:
    matrix = np.zeros((graph.n_vertices, graph.n_vertices))
    for (i, j), c in zip(graph.edges, conductances_of(graph), strict=True):
        matrix[i, i] += c
        matrix[j, j] += c
        matrix[i, j] -= c
        matrix[j, i] -= c
    return matrix


def potentials(graph: CorrelationGraph, currents: np.ndarray) -> np.ndarray:
    """Solve L x = currents with x = 0 at the first vertex of each component: only differences of x mean something."""
    labels = graph.components
    kept = np.setdiff1d(np.arange(graph.n_vertices), np.unique(labels, return_index=True)[1])
    solution = np.zeros(currents.shape)
    solution[kept] = np.linalg.solve(laplacian(graph)[np.ix_(kept, kept)], currents[kept])
    return solution


def solved_weights(graph: CorrelationGraph) -> np.ndarray:
    """Conductance times resistance, by solving the Laplacian without one vertex of each component."""
    inverse = potentials(graph, np.eye(graph.n_vertices))
    i, j = graph.edges.T
    return conductances_of(graph) * (inverse[i, i] + inverse[j, j] - inverse[i, j] - inverse[j, i])


def forest_weights(graph: CorrelationGraph, forests: np.ndarray) -> np.ndarray:
    """By definition: the share of the forests that contain each edge, counted by the product of their conductances."""
    products = np.exp(forests @ np.log(conductances_of(graph)))
    return products @ forests / products.sum()


def from_networkx(graph: nx.Graph, seed: int | None = None) -> CorrelationGraph:
    """With random conductances when a seed is given."""
    graph = nx.convert_node_labels_to_integers(graph)
    edges = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    conductances = None if seed is None else 10.0 ** np.random.default_rng(seed).uniform(-1, 1, len(edges))
    return CorrelationGraph.from_edges(edges, conductances=conductances, vertices=range(graph.number_of_nodes()))


def scale_free(n_vertices: int, seed: int | None = None) -> CorrelationGraph:
    """Has leaves to eliminate and, from a few hundred vertices on, a dense core."""
    return from_networkx(nx.barabasi_albert_graph(n_vertices, 3, seed=5), seed)


def two_communities(n_vertices: int = 80) -> CorrelationGraph:
    """Conductances of 10^6 inside, 10^-6 between: where inverting the core loses its digits."""
    inside = nx.disjoint_union(nx.complete_graph(n_vertices), nx.complete_graph(n_vertices))
    between = [(v, n_vertices + v) for v in range(3)]
    edges = np.array([*inside.edges(), *between])
    return CorrelationGraph.from_edges(edges, conductances=np.r_[np.full(len(edges) - 3, 1e6), np.full(3, 1e-6)])
