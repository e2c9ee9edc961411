"""Groups of points: by the graph of nearest neighbours where that is affordable, by their means where it is not."""

import warnings

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from corrvae.model import Posterior
from corrvae.plots.facts import by_size, group_points
from corrvae.scoring import nearest

# Points up to which "auto" compares all pairs, and neighbours of each that make the graph.
MAX_SPECTRAL = 20_000
_NEIGHBORS, _SCALE_NEIGHBOR, _MAX_NEIGHBORS = 15, 7, 500
_STARTS = 10


def find_clusters(
    points: Posterior, n_clusters: int, *, method: str = "auto", random_state: int = 0, progress: bool | None = None
) -> tuple[Int[np.ndarray, " points"], str]:
    """Divide points into groups; return their numbers, by size from 0, and what was done.

    "spectral" cuts the graph of each point's nearest neighbours by expected distance, correlations included. A link of
    that graph weighs exp(-d_ij^2 / (s_i s_j)), where d^2 is the expected squared distance beyond the least there is and
    s_i the d of the seventh neighbour, so that dense and sparse regions count alike. "kmeans" groups the means. "auto"
    is spectral up to 20,000 points.
    """
    if method not in ("auto", "spectral", "kmeans"):
        raise ValueError(f'method must be "auto", "spectral" or "kmeans", not {method!r}')
    n_points = points.n_vertices
    if not 1 <= n_clusters <= n_points:
        raise ValueError(f"there must be 1 to {n_points:,} groups of {n_points:,} points, not {n_clusters:,}")
    if n_clusters == 1:
        return np.zeros(n_points, np.int64), "one group of all points"
    if method != "kmeans" and (method == "spectral" or n_points <= MAX_SPECTRAL) and n_clusters < n_points:
        graph, width = _neighbor_graph(points, n_clusters, progress)
        if graph is not None:
            route = f"spectral clustering of each point's {width} nearest neighbours"
            return by_size(_cut(graph, n_clusters, random_state)), route
        if method == "spectral":
            raise ValueError("the points fall apart into more groups of neighbours than were asked for; use kmeans")
    return group_points(points.mean, n_clusters, random_state=random_state), "k-means of the means"


def _neighbor_graph(points: Posterior, n_clusters: int, progress: bool | None) -> tuple[sparse.csr_array | None, int]:
    """Return the weighted graph of nearest neighbours, with enough of them that it has no more parts than groups."""
    n_points = points.n_vertices
    oneself = sparse.csr_array(sparse.eye_array(n_points))
    width = min(_NEIGHBORS, n_points - 1)
    while True:
        positions, costs = nearest(points, points, points.usual_metric, width, exclude=oneself, progress=progress)
        graph = _weighted(positions, costs)
        if connected_components(graph, directed=False)[0] <= n_clusters:
            return graph, width
        if width == n_points - 1 or width > _MAX_NEIGHBORS:
            return None, width
        width = min(2 * width, n_points - 1)


def _weighted(positions: Int[np.ndarray, "points width"], costs: Float[np.ndarray, "points width"]) -> sparse.csr_array:
    n_points, width = positions.shape
    distances = np.sqrt(costs - costs.min())
    scale = distances[:, min(_SCALE_NEIGHBOR, width) - 1]
    scale = np.maximum(scale, 1e-6 * max(float(distances.max()), 1e-30))
    # The least weight keeps a link that has faded to nothing.
    weights = np.maximum(np.exp(-(distances**2) / (scale[:, None] * scale[positions])), 1e-12)
    # scikit-learn takes 32-bit indices only
    rows, columns = np.repeat(np.arange(n_points, dtype=np.int32), width), positions.ravel().astype(np.int32)
    graph = sparse.csr_array((weights.ravel(), (rows, columns)), shape=(n_points, n_points))
    return sparse.csr_array(graph.maximum(graph.T))


def _cut(graph: sparse.csr_array, n_clusters: int, random_state: int) -> Int[np.ndarray, " points"]:
    from sklearn.cluster import SpectralClustering

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")  # it has at most a part a group
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        found = SpectralClustering(
            n_clusters, affinity="precomputed", n_init=_STARTS, random_state=random_state
        ).fit_predict(graph)
    return np.asarray(found, np.int64)
