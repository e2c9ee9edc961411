"""How two points of an embedding without uncertainty are compared."""

from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from corrvae.tasks import embedding_scores
from corrvae.tasks.ranks import BlockScores

METRIC_NAMES = MappingProxyType(
    {
        "expected_distance": "expected squared distance",
        "log_odds": "link log-odds",
        "mean_distance": "squared distance",
        "cosine": "cosine",
        "inner_product": "inner product",
    }
)


def block_scores(embedding: Float[np.ndarray, "points dim"], metric: str) -> BlockScores:
    """Score some points against all; larger is better.

    Parameters
    ----------
    embedding
        One row for each point.
    metric
        "mean_distance", "cosine" or "inner_product".

    Examples
    --------
    >>> block_scores(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]), "cosine")(np.array([0])).argmin()
    np.int64(1)
    """
    if metric == "inner_product":
        return lambda rows: embedding[rows] @ embedding.T
    # for directions, twice the cosine is 2 minus the squared distance
    return embedding_scores(_points(embedding, metric))


def pair_scores(
    embedding: Float[np.ndarray, "points dim"], pairs: Int[np.ndarray, "pairs 2"], metric: str
) -> Float[np.ndarray, " pairs"]:
    """Score given pairs, in the units of the metric: a distance is positive.

    Examples
    --------
    >>> points = np.array([[1.0, 0.0], [4.0, 4.0]])
    >>> pair_scores(points, np.array([[0, 1]]), "mean_distance"), pair_scores(points, np.array([[0, 1]]), "cosine")
    (array([25.]), array([0.70710678]))
    """
    first, second = (_points(embedding, metric)[end] for end in pairs.T)
    if metric == "mean_distance":
        return np.square(first - second).sum(axis=1)
    return np.einsum("pd,pd->p", first, second)


def _points(embedding: Float[np.ndarray, "points dim"], metric: str) -> Float[np.ndarray, "points dim"]:
    if metric in ("mean_distance", "inner_product"):
        return embedding
    if metric == "cosine":
        lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
        return embedding / np.where(lengths == 0.0, 1.0, lengths)
    raise ValueError(f'an embedding is compared by "mean_distance", "cosine" or "inner_product", not {metric!r}')
