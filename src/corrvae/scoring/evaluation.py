"""Scores of given pairs with all their parts, correlations included."""

import numpy as np
from jaxtyping import Float, Int

from corrvae.scoring.metrics import Metric, Parts
from corrvae.scoring.neighbors import is_correlated
from corrvae.scoring.points import Points

# Pairs whose correlations are held at a time.
_PAIRS = 65536


def evaluate_pairs(queries: Points, candidates: Points, metric: Metric, pairs: Int[np.ndarray, "pairs 2"]) -> Parts:
    """Give the parts of the scores of pairs (position of a query, position of a candidate).

    Parameters
    ----------
    queries, candidates
        The points.
    metric
        The score.
    pairs
        Positions.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> points = Points.of(np.array([[0.0], [2.0]]), np.ones((2, 1)))
    >>> evaluate_pairs(points, points, MeanDistance(), np.array([[0, 1], [1, 1]])).score
    array([4., 0.])
    """
    if not is_correlated(queries, candidates, metric):
        return metric.parts(queries, candidates, pairs)
    from corrvae.scoring import correlated

    found = []
    for begin in range(0, len(pairs), _PAIRS):
        piece = pairs[begin : begin + _PAIRS]
        correlation = np.tanh(correlated.pre_activation(queries, candidates, piece).astype(np.float64))
        found.append(metric.parts(queries, candidates, piece, correlation))
    return join_parts(found)


def complete_parts(
    queries: Points,
    candidates: Points,
    metric: Metric,
    pairs: Int[np.ndarray, "pairs 2"],
    scores: Float[np.ndarray, " pairs"],
) -> Parts:
    """Give the parts of scores that are known: what the points on their own do not explain is the correlation's.

    Parameters
    ----------
    queries, candidates, metric, pairs
        As in `evaluate_pairs`.
    scores
        The scores of these pairs.

    Examples
    --------
    >>> from corrvae.scoring.metrics import ExpectedDistance
    >>> points = Points.of(np.array([[0.0], [2.0]]), np.ones((2, 1)))
    >>> complete_parts(points, points, ExpectedDistance(), np.array([[0, 1]]), np.array([5.0]))
    Parts(mean=array([4.]), variance=array([2.]), correlation=array([-1.]))
    """
    parts = metric.parts(queries, candidates, pairs)
    return Parts(parts.mean, parts.variance, scores - (parts.mean + parts.variance))


def join_parts(found: list[Parts]) -> Parts:
    """Put parts of several pieces one after the other.

    Examples
    --------
    >>> one = Parts(np.ones(1), np.zeros(1), np.zeros(1))
    >>> join_parts([one, one]).score
    array([1., 1.])
    """
    if not found:
        return Parts(np.empty(0), np.empty(0), np.empty(0))
    names = ("mean", "variance", "correlation")
    return Parts(*(np.concatenate([getattr(part, name) for part in found]) for name in names))
