"""The clustering task: find two known groups of points from the distances between them."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Shaped

from corrvae.tasks.metrics import adjusted_rand_index, normalised_mutual_information
from corrvae.tasks.scorers import BlockDistances
from corrvae.tasks.spectral import cut, similarities


@final
@dataclass(frozen=True)
class ClusteringScores:
    """How well two groups were found; 1 at best and about 0 by chance.

    Attributes
    ----------
    nmi, ari
        Normalised mutual information and adjusted Rand index, similarities having a zero diagonal.
    unit_nmi, unit_ari
        The same with a unit diagonal, which the paper leaves open.
    residual, unit_residual
        How far each eigenvector is from exact, over its eigenvalue. Where it is not well below 1, the points are too
        far apart for a second eigenvector to stand out.

    Examples
    --------
    >>> from corrvae.tasks import embedding_distances
    >>> places = np.array([[0.0], [0.5], [4.5], [5.0]])
    >>> scores = score_clustering(embedding_distances(places), np.array([0, 0, 1, 1]))
    >>> scores.nmi, scores.ari
    (1.0, 1.0)
    """

    nmi: float
    ari: float
    unit_nmi: float
    unit_ari: float
    residual: float
    unit_residual: float


def score_clustering(distances: BlockDistances, labels: Shaped[np.ndarray, " points"]) -> ClusteringScores:
    """Cut points in two by their distances, and compare with the true groups.

    Similarities are exp(-dis / 2); the cut is at the median of the second eigenvector of their normalised Laplacian.
    They are one n-by-n matrix of 4-byte numbers, 400 MB for 10,000 points; its size is logged before it is
    made.

    Parameters
    ----------
    distances
        Function of an array of points that gives their squared distances to every point.
    labels
        The true groups.

    Examples
    --------
    >>> from corrvae.tasks import embedding_distances
    >>> places = np.array([[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]])
    >>> score_clustering(embedding_distances(places), np.array([0, 0, 0, 1, 1, 1])).nmi
    1.0
    """
    similar = similarities(distances, len(labels))
    zero, unit = cut(similar, "zero"), cut(similar, "unit")
    return ClusteringScores(
        nmi=normalised_mutual_information(labels, zero.side),
        ari=adjusted_rand_index(labels, zero.side),
        unit_nmi=normalised_mutual_information(labels, unit.side),
        unit_ari=adjusted_rand_index(labels, unit.side),
        residual=zero.residual,
        unit_residual=unit.residual,
    )
