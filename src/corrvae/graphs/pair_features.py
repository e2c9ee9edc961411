"""What the graph and the features tell of pairs of vertices: short paths between them, and how alike they are.

Walks are summed vertex by vertex along the graph, so that nothing grows with the square of the number of vertices.
"""

from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from corrvae.graphs.graph import CorrelationGraph

NAMES = (
    "common_neighbors",
    "adamic_adar",
    "resource_allocation",
    "three_steps",
    "four_steps",
    "cosine",
    "cosine_of_neighborhoods",
    "has_common_neighbors",
    "degree",
    "has_neighbors",
    "size",
    "triangles",
    "weight",
    "cosine_to_neighborhood",
    "degree_of_other",
    "other_has_neighbors",
    "size_of_other",
    "triangles_of_other",
    "weight_of_other",
    "cosine_of_neighborhood_to_other",
)
# Columns that do not depend on the order of a pair; then those of the first vertex, and those of the second.
N_SYMMETRIC, N_SINGLE = 8, 6
EXCHANGED = (
    *range(N_SYMMETRIC),
    *range(N_SYMMETRIC + N_SINGLE, len(NAMES)),
    *range(N_SYMMETRIC, N_SYMMETRIC + N_SINGLE),
)

# Paths are not followed through vertices of more neighbours than this: they say little, and cost much.
_MOST_NEIGHBORS = 1000
# Directions that rows are reduced to before their cosines are taken.
_DIRECTIONS = 64
# Below these, path sums count as their share of them, above as their logarithm.
_SMALL = np.array([1.0, 1.0, 1e-3, 1e-4, 1e-5])
# Pairs whose features are computed together.
_PAIRS = 4096
# A weight counts as its share of this below it, above as its logarithm.
_SMALL_WEIGHT = 0.25
# Vertices of largest weight that are compared with every vertex.
_MOST_COMPARED = 20_000
# Weights of paths of 2, 3 and 4 steps in the first stage: those of personalised PageRank with alpha 1/2.
_STAGE = (0.25, 0.125, 0.0625)


class Candidates(NamedTuple):
    """Candidates of some vertices, best first by the first stage.

    Attributes
    ----------
    positions
        -1 where a vertex has fewer.
    features
        Their pair features.
    """

    positions: Int[np.ndarray, "rows candidates"]
    features: Float[np.ndarray, "rows candidates features"]


@final
class PairFeatures:
    """Features of pairs of vertices: what speaks for a link.

    For a pair that is linked, all features are those of the graph without its edge.

    Parameters
    ----------
    graph
        The graph.
    directions
        A row of length 1 for each vertex, from `RowDirections`: inner products are cosines.
    sizes
        Sum of each vertex's row.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> features = PairFeatures(graph, np.ones((4, 1), np.float32), np.ones(4))
    >>> found = features.of_pairs(np.array([[0, 2], [1, 2]]))
    >>> f"{found[0, NAMES.index('common_neighbors')]:.3f}"  # log(1 + 1)
    '0.693'
    >>> f"{found[1, NAMES.index('degree')]:.3f}"  # without the edge: log(1 + 1)
    '0.693'
    """

    def __init__(
        self, graph: CorrelationGraph, directions: Float[np.ndarray, "vertices directions"], sizes: np.ndarray
    ) -> None:
        adjacency = graph.to_scipy()
        self.graph, self.directions = graph, np.ascontiguousarray(directions, np.float32)
        self.sizes = np.log1p(np.abs(sizes)).astype(np.float32)
        self._begins, self._neighbors = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
        self._triangles = _triangles(graph)
        shape = graph.n_vertices, graph.n_vertices
        entries = np.ones(len(self._neighbors)), self._neighbors, self._begins
        ones = sparse.csr_array(entries, shape=shape)
        degrees = graph.degrees
        inverse = np.where((degrees > 0) & (degrees <= _MOST_NEIGHBORS), 1.0 / np.maximum(degrees, 1), 0.0)
        self._inverse_degrees_around = np.asarray(ones @ inverse, np.float64)
        self.weights = np.asarray(ones @ (1.0 / np.maximum(degrees, 1)), np.float64)
        self._compared = np.sort(np.argsort(-self.weights, kind="stable")[:_MOST_COMPARED])
        self._linked_to_compared = sparse.csr_array(ones[:, self._compared])
        self._sums = np.asarray(ones @ self.directions, np.float32)

    @cached_property
    def _around(self) -> Float[np.ndarray, "vertices directions"]:
        return _unit(self._sums)

    def alike(self, vertices: Int[np.ndarray, " rows"], count: int) -> Int[np.ndarray, "rows alike"]:
        """Return vertices that no path needs to reach: half by likeness times weight, half by likeness.

        The weight of a vertex is the sum of 1 / degree over its neighbours: where leaves of the graph are linked. Some
        may be neighbours, or listed twice.
        """
        there, half = self._compared, count // 2
        if not half or count >= len(there):
            return np.tile(there[:count], (len(vertices), 1))
        cosines = np.maximum(self.directions[vertices] @ self.directions[there].T, 0.0)
        known = self._linked_to_compared[vertices].nonzero()
        found = []
        for scores in (_unreached(self.weights[there], cosines), cosines + 1e-6 * self.weights[there]):
            scores[known] = -1.0
            found.append(np.argpartition(-scores, half - 1, axis=1)[:, :half])
        return there[np.concatenate(found, axis=1)]

    def candidates(
        self, vertices: Int[np.ndarray, " rows"], n_near: int, listed: Int[np.ndarray, "rows listed"]
    ) -> Candidates:
        """Return listed candidates of vertices, and then the best that paths of two to four steps reach.

        Parameters
        ----------
        vertices
            Their neighbours are no candidates.
        n_near
            How many are taken by paths times 1 + the cosine.
        listed
            Further candidates, -1 for none. The first of each row is one in any case, and if it is a neighbour, all is
            as if that edge were not there; others are left out where they are neighbours, or listed before.
        """
        from corrvae.graphs.walk_kernels import expand

        vertices = np.asarray(vertices, np.int64)
        found, walks = expand(
            vertices,
            np.ascontiguousarray(listed, np.int64),
            self._begins,
            self._neighbors,
            self._inverse_degrees_around,
            self.directions,
            int(n_near),
            _MOST_NEIGHBORS,
            np.array(_STAGE),
        )
        cut = (found[:, 0] >= 0) & are_linked(self.graph, vertices, found[:, 0])
        return Candidates(found, self._features(vertices, found, walks, np.flatnonzero(cut)))

    def of_pairs(self, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs features"]:
        """Return the features of listed pairs."""
        pieces = [
            self.candidates(piece[:, 0], 0, piece[:, 1:]).features[:, 0]
            for piece in (pairs[begin : begin + _PAIRS] for begin in range(0, max(1, len(pairs)), _PAIRS))
        ]
        return np.concatenate(pieces)

    def remaining_order(self, vertex: int) -> Float[np.ndarray, " vertices"]:
        """Return what orders the vertices that are no candidates of a vertex: likeness times weight."""
        return _unreached(self.weights, np.maximum(self.directions @ self.directions[vertex], 0.0))

    def _features(
        self, i: np.ndarray, found: np.ndarray, walks: np.ndarray, cut: Int[np.ndarray, " cut"]
    ) -> Float[np.ndarray, "rows candidates features"]:
        """Return the features of each row's candidates; in the rows `cut`, without the edge to the first."""
        j = np.maximum(found, 0)
        degree_i = np.broadcast_to(self.graph.degrees[i][:, None], j.shape).copy()
        degree_j = self.graph.degrees[j]
        mine, theirs = self.directions[i], self.directions
        around_i, around_j = self._around[i], self._around
        triangles_i = np.broadcast_to(self._triangles[i][:, None], j.shape).copy()
        triangles_j = self._triangles[j]
        weight_i = np.broadcast_to(self.weights[i][:, None], j.shape).copy()
        weight_j = self.weights[j]
        to_j = _products(mine, around_j, j)
        other, without = found[cut, :1].ravel(), np.empty((0, mine.shape[1]))
        if len(cut):
            weight_i[cut] -= 1.0 / degree_j[cut, :1]
            weight_j[cut, 0] -= 1.0 / degree_i[cut, 0]
            degree_j[cut, 0] -= 1
            degree_i[cut] -= 1
            adjacency = self.graph.to_scipy()
            shared = (adjacency[i[cut]] != 0).multiply(adjacency[other] != 0).sum(axis=1)
            triangles_i[cut] -= shared[:, None]
            triangles_j[cut, 0] -= shared
            around_i[cut] = _unit(self._sums[i[cut]] - theirs[other])
            without = _unit(self._sums[other] - mine[cut])
            to_j[cut, 0] = (mine[cut] * without).sum(1)
        of_neighborhoods = _products(around_i, around_j, j)
        if len(cut):
            of_neighborhoods[cut, 0] = (around_i[cut] * without).sum(1)
        scaled = np.log1p(walks / _SMALL)
        columns = (
            *np.moveaxis(scaled, -1, 0),
            _products(mine, theirs, j),
            of_neighborhoods,
            walks[..., 0] > 0,
            np.log1p(degree_i),
            degree_i > 0,
            np.broadcast_to(self.sizes[i][:, None], j.shape),
            np.log1p(triangles_i),
            np.log1p(np.maximum(weight_i, 0.0) / _SMALL_WEIGHT),
            _products(around_i, theirs, j),
            np.log1p(degree_j),
            degree_j > 0,
            self.sizes[j],
            np.log1p(triangles_j),
            np.log1p(np.maximum(weight_j, 0.0) / _SMALL_WEIGHT),
            to_j,
        )
        return np.stack([column.astype(np.float32) for column in columns], axis=-1)


def are_linked(graph: CorrelationGraph, first: np.ndarray, second: np.ndarray) -> Bool[np.ndarray, " *pairs"]:
    """Return which pairs of vertices are edges."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.isin(low * np.int64(graph.n_vertices) + high, graph.edges @ [graph.n_vertices, 1])


def _triangles(graph: CorrelationGraph) -> Int[np.ndarray, " vertices"]:
    """Count the triangles at each vertex."""
    from corrvae.graphs.walk_kernels import count_triangles

    place = np.empty(graph.n_vertices, np.int64)  # by degree, so that no vertex has many neighbours that come later
    place[np.argsort(graph.degrees, kind="stable")] = np.arange(graph.n_vertices)
    ends = np.sort(place[graph.edges], axis=1)
    shape = graph.n_vertices, graph.n_vertices
    later = sparse.csr_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=shape)
    return count_triangles(later.indptr.astype(np.int64), later.indices.astype(np.int64))[place]


def _unreached(weights: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    """Return the first stage's order of vertices that paths do not reach."""
    return (0.05 + weights) * (0.1 + cosines)


def _products(rows: np.ndarray, table: np.ndarray, j: np.ndarray) -> Float[np.ndarray, "rows candidates"]:
    return np.matmul(table[j], rows[:, :, None])[..., 0]


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths < 1e-6, 1.0, lengths)


@final
class RowDirections:
    """Rows of features as short vectors of length 1, whose inner products are about the cosines of the rows.

    Sparse columns are weighted by their inverse document frequency, dense ones standardised; then rows are projected on
    the directions in which they vary most.
    """

    def __init__(self, matrix: Any) -> None:
        from sklearn.utils.extmath import randomized_svd

        n_rows, n_columns = matrix.shape
        self.is_sparse = sparse.issparse(matrix)
        if self.is_sparse:
            counts = np.bincount(sparse.csr_array(matrix).indices, minlength=n_columns)
            self._factors, self._means = np.log((1.0 + n_rows) / (1.0 + counts)) + 1.0, 0.0
        else:
            some = np.nan_to_num(np.asarray(matrix[:: max(1, n_rows // 10_000)], np.float64))
            self._means = some.mean(0)
            self._factors = 1.0 / np.where(some.std(0) > 0, some.std(0), 1.0)
        self._basis = None
        if min(n_rows, n_columns) > _DIRECTIONS:
            rows = self._weigh(matrix[np.unique(np.linspace(0, n_rows - 1, 50_000).astype(int))])
            self._basis = randomized_svd(rows, _DIRECTIONS, random_state=0)[2].T

    def __call__(self, matrix: Any) -> Float[np.ndarray, "rows directions"]:
        """Return the rows' directions; 0 for a row without entries."""
        pieces = []
        for begin in range(0, max(1, matrix.shape[0]), 10_000):
            rows = self._weigh(matrix[begin : begin + 10_000])
            if self._basis is not None:
                rows = rows @ self._basis
            pieces.append(_unit(np.asarray(rows.todense() if sparse.issparse(rows) else rows)).astype(np.float32))
        return np.concatenate(pieces)

    def _weigh(self, rows: Any) -> Any:
        if self.is_sparse:
            rows = sparse.csr_array(rows, dtype=np.float64) * self._factors[None, :]
            rows = sparse.csr_array(rows)
            lengths = np.sqrt(np.asarray((rows * rows).sum(1)))
            return sparse.csr_array(sparse.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ rows)
        return _unit((np.nan_to_num(np.asarray(rows, np.float64)) - self._means) * self._factors)
