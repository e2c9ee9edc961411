"""Elimination written in the simplest way: sets, dense matrices and fractions."""

from fractions import Fraction

import numpy as np

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels.adjacency import adjacency_lists
from corrvae.graphs.weights.kernels.elimination import Structure, supernode_tails
from corrvae.graphs.weights.pattern import later_neighbors
from support.resistance import conductances_of


def no_control() -> np.ndarray:
    return np.zeros(2, np.int64)


def lists_of(graph: CorrelationGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Adjacency lists of the graph as it is."""
    i, j = graph.edges.T.astype(np.int32)
    return adjacency_lists(graph.n_vertices, i.copy(), j.copy())


def structure_of(graph: CorrelationGraph, order: np.ndarray, n_eliminated: int) -> Structure:
    """Structure of an elimination in any order, each vertex a supernode of its own."""
    n = graph.n_vertices
    later = later_neighbors(order, *lists_of(graph), n)
    starts = np.arange(n_eliminated)
    tails = supernode_tails(starts, starts + 1, later[0], later[1], n, no_control())
    return Structure(starts, starts + 1, *tails, *later, n_eliminated)


def tail_of(structure: Structure, supernode: int) -> list[int]:
    begin, end = structure.tail_pointers[supernode : supernode + 2]
    return structure.tails[begin:end].tolist()


def column_pairs(structure: Structure) -> list[tuple[int, int]]:
    """The pair of positions that each entry of the columns stands for."""
    pairs = []
    for s, (start, end) in enumerate(zip(structure.starts, structure.ends, strict=True)):
        for j in range(start, end):
            pairs += [(j, i) for i in range(j + 1, end)]
            pairs += [(j, i) for i in tail_of(structure, s)]
    return pairs


def symbolic_fill(n_positions: int, pairs: np.ndarray, n_eliminated: int) -> list[set[int]]:
    """Later neighbours of every position at the moment it is eliminated, in order of the positions."""
    neighbors = [set() for _ in range(n_positions)]
    for i, j in pairs:
        neighbors[i].add(int(j))
        neighbors[j].add(int(i))
    for v in range(n_eliminated):
        for a in neighbors[v]:
            neighbors[a] |= neighbors[v] - {a}
            neighbors[a].discard(v)
    return neighbors[:n_eliminated]


def in_positions(graph: CorrelationGraph, order: np.ndarray) -> np.ndarray:
    """The graph's edges between positions of an order of its vertices."""
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    return position[graph.edges]


def conductance_matrix(graph: CorrelationGraph, order: np.ndarray | None = None) -> np.ndarray:
    """Conductances between vertices, or between positions of an order of them."""
    edges = graph.edges if order is None else in_positions(graph, order)
    matrix = np.zeros((graph.n_vertices, graph.n_vertices))
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = conductances_of(graph)
    return matrix


def star_mesh(conductances: np.ndarray, n_eliminated: int) -> np.ndarray:
    """Remove the first vertices one by one; row v keeps its conductances at the moment v leaves."""
    matrix = conductances.copy()
    for v in range(n_eliminated):
        row = matrix[v, v + 1 :]
        if row.any():
            matrix[v + 1 :, v + 1 :] += np.outer(row, row) / row.sum()
        np.fill_diagonal(matrix, 0.0)
    return matrix


def grounded_inverse(conductances: np.ndarray) -> np.ndarray:
    """Inverse of the Laplacian of a connected graph without its first vertex, whose row and column are zero."""
    inverse = np.zeros(conductances.shape)
    laplacian = np.diag(conductances.sum(axis=1)) - conductances
    inverse[1:, 1:] = np.linalg.inv(laplacian[1:, 1:])
    return inverse


def matrix_resistances(conductances: np.ndarray) -> np.ndarray:
    """Resistance between every two vertices of a connected graph."""
    inverse = grounded_inverse(conductances)
    own = np.diag(inverse)
    return own[:, None] + own[None, :] - inverse - inverse.T


def exact_resistances(conductances: np.ndarray) -> np.ndarray:
    """Resistance between every two vertices of a small connected graph, in fractions: no rounding until the end."""
    c = [[Fraction(float(x)) for x in row] for row in conductances]
    n = len(c)
    # grounded Laplacian beside the identity, reduced to the identity beside its inverse
    rows = [
        [(sum(c[i]) if i == j else -c[i][j]) for j in range(1, n)] + [Fraction(int(i == j)) for j in range(1, n)]
        for i in range(1, n)
    ]
    for k in range(n - 1):
        pivot = next(r for r in range(k, n - 1) if rows[r][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for r in range(n - 1):
            if r != k and rows[r][k]:
                rows[r] = [x - rows[r][k] * y for x, y in zip(rows[r], rows[k], strict=True)]
    inverse = [[Fraction(0)] * n, *([Fraction(0), *row[n - 1 :]] for row in rows)]
    return np.array([[float(inverse[i][i] + inverse[j][j] - 2 * inverse[i][j]) for j in range(n)] for i in range(n)])


def exact_log_forests(conductances: np.ndarray) -> float:
    """Logarithm of the sum over spanning trees of a connected graph, by star-mesh elimination in fractions."""
    c = [[Fraction(float(value)) for value in row] for row in conductances]
    total = 0.0
    for v in range(len(c) - 1, 0, -1):
        pivot = sum(c[v][:v])
        total += np.log(float(pivot))
        for a in range(v):
            for b in range(v):
                c[a][b] += c[v][a] * c[v][b] / pivot if a != b else 0
    return total
