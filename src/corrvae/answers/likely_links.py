"""The best of all pairs of points by a score, exactly, without ever holding all of them."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.scoring.metrics import Metric
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions, Points

# Neighbours that each point is first asked for, at least.
_FEWEST = 8


@final
@dataclass(frozen=True, eq=False)
class BestPairs:
    """Pairs i < j of positions, the best first; of equal ones the smaller positions.

    Attributes
    ----------
    pairs, scores
        The pairs and their scores.

    Examples
    --------
    >>> found = BestPairs(np.array([[2, 3], [0, 1]]), np.array([0.25, 1.0]))
    >>> found.pairs[found.scores.argmin()].tolist()
    [2, 3]
    """

    pairs: Int[np.ndarray, "pairs 2"]
    scores: Float[np.ndarray, " pairs"]


def best_pairs(
    points: Points, metric: Metric, n_pairs: int, exclusions: Exclusions, *, progress: bool | None = None
) -> BestPairs:
    """Find the best of all unordered pairs of points.

    Every point is asked for a few nearest neighbours. The last of the best pairs among these is a limit: a point whose
    farthest neighbour comes before it may have more such pairs, and is asked for twice as many. That ends soon, as each
    point asked again has all its neighbours so far among the best pairs, which are only so many. Memory grows with the
    points and with the pairs asked for, never with the points squared.

    Parameters
    ----------
    points
        The points.
    metric
        The score.
    n_pairs
        How many pairs; fewer if there are no more.
    exclusions
        What is left out, the same both ways; each point itself must be among it.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> points = Points.of(np.array([[0.0], [1.0], [3.0], [3.5]]), np.ones((4, 1)))
    >>> oneself = Exclusions.of(4, np.arange(4), np.arange(4))
    >>> best_pairs(points, MeanDistance(), 2, oneself).pairs.tolist()
    [[2, 3], [0, 1]]
    """
    if n_pairs < 1:
        raise ValueError(f"the number of pairs must be positive, got {n_pairs}")
    n_points = len(points)
    asking = np.arange(n_points if n_points > 1 else 0)
    width = max(_FEWEST, -(-4 * n_pairs // max(n_points, 1)))
    costs, codes = np.empty(0), np.empty(0, np.int64)  # a pair's code is i n + j: codes are in the order of pairs
    while len(asking):
        width = min(width, n_points)
        everyone = len(asking) == n_points
        queries = points if everyone else points.take(asking)
        found = nearest(queries, points, metric, width, exclusions.take(asking), same=everyone, progress=progress)
        there = found.positions >= 0
        ends = np.repeat(asking, there.sum(axis=1)), found.positions[there]
        codes = np.concatenate([codes, np.minimum(*ends) * n_points + np.maximum(*ends)])
        costs = np.concatenate([costs, metric.sign * found.scores[there]])
        codes, first = np.unique(codes, return_index=True)
        best = np.lexsort([codes, costs[first]])[:n_pairs]
        codes, costs = codes[best], costs[first][best]
        # What a full list has not shown comes after its last entry. A pair is looked for in its first point's list.
        more = there[:, -1]
        if len(codes) == n_pairs:
            last, place = metric.sign * found.scores[:, -1], asking * n_points + found.positions[:, -1]
            more &= (last < costs[-1]) | ((last == costs[-1]) & (place < codes[-1]))
        asking = asking[more] if width < n_points else asking[:0]
        width *= 2
    return BestPairs(np.stack(np.divmod(codes, max(n_points, 1)), axis=1), metric.sign * costs)
