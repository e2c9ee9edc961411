"""Places on a map: embeddings in two dimensions."""

import numpy as np
from jaxtyping import Float, Int

METHODS = ("neighbors", "pca", "umap")
# Neighbours that pull, and how often one does in all, as far as that is between the fewest and the most rounds.
_PULLING = 10
_MOVES, _FEWEST_ROUNDS, _MOST_ROUNDS = 100_000_000, 100, 500


def project(
    embedding: Float[np.ndarray, "points dim"], method: str = "pca", *, random_state: int = 0
) -> tuple[Float[np.ndarray, "points 2"], float | None]:
    """Return points in two dimensions, and the share of the variance that these hold (None for UMAP).

    Principal components are each turned so that the largest loading is positive. UMAP needs umap-learn.
    """
    if method == "umap":
        try:
            from umap import UMAP  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise ValueError("a map by UMAP needs the package umap-learn: pip install umap-learn") from error
        return np.asarray(UMAP(n_components=2, random_state=random_state).fit_transform(embedding), np.float64), None
    if method != "pca":
        raise ValueError(f'the method of a map must be "pca" or "umap", not {method!r}')
    centred = embedding - embedding.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    plane = directions[:, ::-1][:, :2]
    largest = np.abs(plane).argmax(axis=0)
    plane = plane * np.where(plane[largest, np.arange(plane.shape[1])] < 0, -1.0, 1.0)
    places = np.zeros((len(embedding), 2))
    places[:, : plane.shape[1]] = centred @ plane
    total = float(variances.sum())
    return places, float(variances[::-1][:2].sum()) / total if total > 0 else 1.0


def spring_layout(
    neighbors: Int[np.ndarray, "points k"], start: Float[np.ndarray, "points 2"], *, random_state: int = 0
) -> Float[np.ndarray, "points 2"]:
    """Return places at which neighbours are close: a neighbour pulls, random points push.

    With y = 1 / (1 + d^2) at the distance d, these are stochastic gradient steps on the sum over neighbours of log y,
    plus the sum over random points of log(1 - y); the nearest neighbour pulls most often.

    Neighbours are positions, nearest first, -1 where there is none.
    """
    if len(start) < 2:
        return np.zeros(start.shape)
    from corrvae.plots.layout_kernels import relax

    pulling = np.ascontiguousarray(neighbors[:, :_PULLING], dtype=np.int64)
    spread = start.std(axis=0).max()
    noise = np.random.default_rng(random_state).normal(scale=1e-3, size=start.shape)
    places = np.ascontiguousarray(5.0 * start / (spread if spread > 0 else 1.0) + noise, dtype=np.float64)
    rounds = int(np.clip(_MOVES // max(pulling.size, 1), _FEWEST_ROUNDS, _MOST_ROUNDS))
    relax(places, pulling, rounds, np.uint64(random_state + 1))
    return places - places.mean(axis=0)
