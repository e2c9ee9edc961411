"""Groups of points: by the graph of nearest neighbours where that is affordable, by their means where it is not."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from corrvae.scoring.metrics import ExpectedDistance
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions, Points

# Points up to which `auto` compares all pairs, and entries that a graph of neighbours may have.
MOST_SPECTRAL, _MOST_ENTRIES = 20_000, 20_000_000
_NEIGHBORS, _SCALE_NEIGHBOR = 15, 7
# Points up to which all eigenvectors are computed; beyond, a few are, by iteration.
_DENSE = 1500
_STARTS = 10


@final
@dataclass(frozen=True, eq=False)
class Clusters:
    """A group for each point.

    Attributes
    ----------
    labels
        Groups are numbered from 0 by size, the largest first; of equal ones that of the first point comes first.
    method
        "spectral" or "kmeans".
    route
        What was done, in a sentence.

    Examples
    --------
    >>> Clusters(np.array([0, 0, 1]), "kmeans", "k-means of 3 points").sizes.tolist()
    [2, 1]
    """

    labels: Int[np.ndarray, " points"]
    method: Literal["spectral", "kmeans"]
    route: str

    @property
    def sizes(self) -> Int[np.ndarray, " clusters"]:
        """Points in each group."""
        return np.bincount(self.labels)


def find_clusters(
    points: Points, n_clusters: int, *, method: str = "auto", seed: int = 0, progress: bool | None = None
) -> Clusters:
    """Divide points into groups.

    "spectral" cuts the graph of each point's nearest neighbours by exact expected distance, correlations included. A
    link of that graph weighs exp(-d_ij^2 / (s_i s_j)), where d^2 is the expected squared distance beyond the least
    there is and s_i the d of the seventh neighbour, so that dense and sparse regions count alike; the rows of the first
    eigenvectors of the normalised Laplacian are then grouped by k-means. "kmeans" groups the means, and knows neither
    standard deviations nor correlations. "auto" is spectral up to 20,000 points.

    Parameters
    ----------
    points
        The points.
    n_clusters
        How many groups, at most as many as points.
    method
        "auto", "spectral" or "kmeans".
    seed
        Of the starts of k-means.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> places = np.array([[0.0], [0.5], [1.0], [9.0], [9.5]])
    >>> find_clusters(Points.of(places, np.full((5, 1), 0.1)), 2).labels.tolist()
    [0, 0, 0, 1, 1]
    """
    if method not in ("auto", "spectral", "kmeans"):
        raise ValueError(f'method must be "auto", "spectral" or "kmeans", not {method!r}')
    if not 1 <= n_clusters <= len(points):
        raise ValueError(f"there must be 1 to {len(points):,} groups of {len(points):,} points, not {n_clusters:,}")
    if n_clusters == 1:
        return Clusters(np.zeros(len(points), np.int64), "kmeans", "one group of all points")
    spectral = method == "spectral" or (method == "auto" and len(points) <= MOST_SPECTRAL)
    found = _neighbor_graph(points, n_clusters, progress) if spectral else None
    if found is not None:
        labels = _group(_eigenvectors(found.graph, n_clusters), n_clusters, seed)
        route = f"spectral clustering of each point's {found.width} nearest neighbours"
        return Clusters(_by_size(labels), "spectral", route)
    if method == "spectral":
        raise ValueError("the points fall apart into more groups of neighbours than were asked for; use kmeans")
    route = "k-means of the means"
    if spectral:
        route += ", as the points fall apart into more groups of neighbours than were asked for"
    return Clusters(_by_size(_group(points.mean.astype(np.float64), n_clusters, seed)), "kmeans", route)


@final
@dataclass(frozen=True, eq=False)
class _NeighborGraph:
    graph: sparse.csr_array
    width: int


def _neighbor_graph(points: Points, n_clusters: int, progress: bool | None) -> _NeighborGraph | None:
    """Give the weighted graph of nearest neighbours, with enough of them that it has no more parts than groups."""
    n_points = len(points)
    oneself = Exclusions.of(n_points, np.arange(n_points), np.arange(n_points))
    width = min(_NEIGHBORS, n_points - 1)
    while True:
        found = nearest(points, points, ExpectedDistance(), width, oneself, same=True, progress=progress)
        graph = _weighted(found.positions, found.scores)
        n_parts = connected_components(graph, directed=False)[0]
        if n_parts <= n_clusters:
            return _NeighborGraph(graph, width)
        if width == n_points - 1 or 2 * width * n_points > _MOST_ENTRIES:
            return None
        width = min(2 * width, n_points - 1)


def _weighted(positions: Int[np.ndarray, "points width"], costs: Float[np.ndarray, "points width"]) -> sparse.csr_array:
    n_points, width = positions.shape
    distances = np.sqrt(costs - costs.min())
    scale = distances[:, min(_SCALE_NEIGHBOR, width) - 1]
    scale = np.maximum(scale, 1e-6 * max(float(distances.max()), 1e-30))
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[positions]))
    # a link that has faded to nothing is a link still
    weights = np.maximum(weights, 1e-12)
    rows = np.repeat(np.arange(n_points), width)
    graph = sparse.csr_array((weights.ravel(), (rows, positions.ravel())), shape=(n_points, n_points))
    return sparse.csr_array(graph.maximum(graph.T))


def _eigenvectors(graph: sparse.csr_array, count: int) -> Float[np.ndarray, "points count"]:
    """Give the first eigenvectors of the normalised Laplacian, each row scaled to length 1."""
    root = np.sqrt(graph.sum(axis=1))
    scaled = sparse.csr_array(sparse.diags_array(1.0 / root) @ graph @ sparse.diags_array(1.0 / root))
    n_points = len(root)
    if n_points <= max(_DENSE, 3 * count):
        vectors = np.linalg.eigh(scaled.toarray())[1][:, -count:]
    else:
        start = np.random.default_rng(0).standard_normal(n_points)
        vectors = eigsh(scaled, k=count, which="LA", v0=start)[1]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _group(rows: Float[np.ndarray, "points dim"], n_clusters: int, seed: int) -> Int[np.ndarray, " points"]:
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than groups: some stay empty
        return KMeans(n_clusters, n_init=_STARTS, random_state=seed).fit_predict(rows).astype(np.int64)  # pyright: ignore[reportArgumentType]


def _by_size(labels: Int[np.ndarray, " points"]) -> Int[np.ndarray, " points"]:
    _, first, group, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    place = np.empty(len(first), np.int64)
    place[np.lexsort([first, -counts])] = np.arange(len(first))
    return place[group]
