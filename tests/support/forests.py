"""Spanning forests of tiny graphs by enumeration, and what follows from them."""

from itertools import combinations

import networkx as nx
import numpy as np
from scipy import stats

from corrvae.graphs import CorrelationGraph


def random_forest(n_vertices: int, seed: int) -> np.ndarray:
    """Edges of a random forest, in random order and orientation."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(n_vertices)
    edges = [(order[generator.integers(0, i)], order[i]) for i in range(1, n_vertices) if generator.random() < 0.8]
    return generator.permutation(generator.permuted(np.array(edges, dtype=np.int64).reshape(-1, 2), axis=1))


def random_edges(n_vertices: int, density: float, seed: int) -> np.ndarray:
    """Edges of a random graph."""
    generator = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n_vertices), 2)), dtype=np.int64).reshape(-1, 2)
    return every[generator.random(len(every)) < density]


def spanning_forests(n_vertices: int, edges: np.ndarray) -> list[tuple[int, ...]]:
    """Every maximal acyclic subgraph, as the numbers of its edges."""

    def trees(numbers) -> int | None:
        """Number of trees; None if there is a cycle."""
        tree_of = list(range(n_vertices))
        for i, j in edges[list(numbers)].tolist():
            if tree_of[i] == tree_of[j]:
                return None
            tree_of = [tree_of[i] if tree == tree_of[j] else tree for tree in tree_of]
        return len(set(tree_of))

    whole = nx.Graph(edges.tolist())
    size = len(whole) - nx.number_connected_components(whole)
    return [numbers for numbers in combinations(range(len(edges)), size) if trees(numbers)]


def enumerate_forests(graph: CorrelationGraph) -> np.ndarray:
    """Every maximal acyclic subgraph as a row: whether it contains each edge."""
    forests = spanning_forests(graph.n_vertices, graph.edges)
    rows = np.zeros((len(forests), graph.n_edges), bool)
    for row, forest in zip(rows, forests, strict=True):
        row[list(forest)] = True
    return rows


def forest_shares(forests: list[tuple[int, ...]], conductances: np.ndarray) -> np.ndarray:
    """Probability of each forest, in proportion to the product of its conductances."""
    products = np.array([np.prod(conductances[list(forest)]) for forest in forests])
    return products / products.sum()


def weights_by_enumeration(n_vertices: int, edges: np.ndarray, conductances: np.ndarray | None = None) -> np.ndarray:
    """Share of the spanning forests that contain each edge."""
    forests = spanning_forests(n_vertices, edges)
    shares = forest_shares(forests, np.ones(len(edges)) if conductances is None else conductances)
    return np.array(
        [sum(s for s, forest in zip(shares, forests, strict=True) if e in forest) for e in range(len(edges))]
    )


def prior_covariance(n_vertices: int, edges: np.ndarray, tau: float) -> np.ndarray:
    """Covariance of one latent dimension along a forest: tau to the power of the distance."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n_vertices))
    graph.add_edges_from(edges.tolist())
    covariance = np.zeros((n_vertices, n_vertices))
    for i, distances in nx.all_pairs_shortest_path_length(graph):
        for j, distance in distances.items():
            covariance[i, j] = tau**distance
    return covariance


def log_evidence(x: np.ndarray, decoder: np.ndarray, noise: float, covariance: np.ndarray) -> float:
    """Exact log p(x) for x_i = decoder z_i + noise, with the latent points' covariance in each dimension."""
    full = np.kron(covariance, decoder @ decoder.T) + noise**2 * np.eye(x.size)
    return float(stats.multivariate_normal(np.zeros(x.size), full).logpdf(x.ravel()))
