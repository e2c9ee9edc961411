"""Functions that score or measure some vertices against all: of embeddings, and of graphs without any learning."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from corrvae.graphs.graph import CorrelationGraph
from corrvae.tasks.ranks import BlockScores

# Given some vertices, the squared distance of each to every vertex.
BlockDistances = Callable[[np.ndarray], np.ndarray]


def embedding_distances(mean: Any, stddev: Any = None) -> BlockDistances:
    """Squared distances between the rows of an embedding; expected ones, given standard deviations.

    Parameters
    ----------
    mean
        Array of shape (n, d).
    stddev
        Standard deviations of the same shape, of a posterior that factorises: every distance but that of a vertex to
        itself grows by the variances of both ends.

    Examples
    --------
    >>> embedding_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))(np.array([0])).tolist()
    [[0.0, 25.0]]
    >>> embedding_distances(np.array([[0.0], [2.0]]), np.array([[1.0], [2.0]]))(np.array([1])).tolist()
    [[9.0, 0.0]]
    """
    points = np.asarray(mean)
    # about the centre the expansion of the square below cancels least
    points = (points - points.mean(axis=0, dtype=np.float64)).astype(np.float32)
    squares = np.einsum("nd,nd->n", points, points)
    doubled = -2.0 * points.T
    spread = None if stddev is None else np.square(np.asarray(stddev, dtype=np.float32)).sum(axis=1)

    def distances(rows: np.ndarray) -> np.ndarray:
        block = points[rows] @ doubled
        block += squares[rows, None]
        block += squares
        np.maximum(block, 0.0, out=block)
        if spread is not None:
            block += spread[rows, None]
            block += spread
        block[np.arange(len(rows)), rows] = 0.0
        return block

    return distances


def embedding_scores(mean: Any, stddev: Any = None) -> BlockScores:
    """Scores by (expected) squared distance: the nearest score highest. See `embedding_distances`.

    Examples
    --------
    >>> embedding_scores(np.array([[0.0], [1.0], [3.0]]))(np.array([0])).argsort().tolist()
    [[2, 1, 0]]
    """
    distances = embedding_distances(mean, stddev)

    def scores(rows: np.ndarray) -> np.ndarray:
        block = distances(rows)
        return np.negative(block, out=block)

    return scores


def degree_scores(graph: CorrelationGraph) -> BlockScores:
    """Score every vertex by its degree, whoever asks.

    Examples
    --------
    >>> degree_scores(CorrelationGraph.from_edges([(0, 1), (1, 2)]))(np.array([0])).tolist()
    [[1.0, 2.0, 1.0]]
    """
    degrees = graph.degrees.astype(np.float32)
    return lambda rows: np.broadcast_to(degrees, (len(rows), len(degrees)))


def common_neighbour_scores(graph: CorrelationGraph) -> BlockScores:
    """Score two vertices by the number of neighbours they share.

    Examples
    --------
    >>> common_neighbour_scores(CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 3), (2, 3)]))(np.array([0])).tolist()
    [[2.0, 0.0, 0.0, 2.0]]
    """
    return _weighted_neighbours(graph, np.ones(graph.n_vertices))


def adamic_adar_scores(graph: CorrelationGraph) -> BlockScores:
    """Score two vertices by the neighbours they share, each counting 1 / log(its degree).

    Examples
    --------
    The shared neighbours 1 and 2 have degree 2: 2 / log 2 = 2.885.

    >>> graph = CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> adamic_adar_scores(graph)(np.array([0])).round(3).tolist()
    [[2.885, 0.0, 0.0, 2.885]]
    """
    # a neighbour that two vertices share has degree 2 or more; the others' weights are never used
    return _weighted_neighbours(graph, 1.0 / np.log(np.maximum(graph.degrees, 2)))


def _weighted_neighbours(graph: CorrelationGraph, weights: np.ndarray) -> BlockScores:
    pattern = graph.to_scipy()
    pattern.data[:] = 1.0
    weighted = sparse.csr_array(sparse.diags_array(weights) @ pattern)
    return lambda rows: (pattern[rows] @ weighted).toarray()
