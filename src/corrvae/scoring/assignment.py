"""One-to-one matching: the pairs whose scores are best in sum, where no point is in two pairs."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from corrvae.scoring.evaluation import evaluate_pairs
from corrvae.scoring.metrics import Metric
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions, Points

# Up to here all pairs are scored; beyond, each point's nearest candidates.
_MOST_PAIRS, _CANDIDATES = 4_000_000, 50


@final
@dataclass(frozen=True, eq=False)
class Assignment:
    """A one-to-one matching.

    Attributes
    ----------
    pairs
        Positions of left and right points, in the order of the left ones.
    scores
        Their scores.
    exact
        Whether every pair of points was admitted.
    """

    pairs: Int[np.ndarray, "pairs 2"]
    scores: Float[np.ndarray, " pairs"]
    exact: bool


def assign(
    left: Points,
    right: Points,
    metric: Metric,
    *,
    n_candidates: int | None = None,
    progress: bool | None = None,
) -> Assignment:
    """Match every point of the smaller side with one of the other, so that the sum of scores is best.

    With few pairs all of them are admitted and the matching is the best there is. With many, or if `n_candidates` is
    given, only the best candidates of each point of the smaller side are, twice as many until everyone can be matched;
    the matching is the best among these, and none of its scores is approximate.

    Parameters
    ----------
    left, right
        The points.
    metric
        The score.
    n_candidates
        Candidates of each point; ``None``: all, up to four million pairs, and else 50.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> left, right = (Points.of(np.array([[x] for x in row]), np.ones((2, 1))) for row in ([0.0, 1.0], [1.1, 3.0]))
    >>> assign(left, right, MeanDistance()).pairs.tolist()  # the nearest neighbour of both is the first
    [[0, 0], [1, 1]]
    """
    if n_candidates is None and len(left) * len(right) > _MOST_PAIRS:
        n_candidates = _CANDIDATES
    if n_candidates is None or n_candidates >= max(len(left), len(right)):
        return _assign_all(left, right, metric)
    turned = len(left) > len(right)
    few, many = (right, left) if turned else (left, right)
    pairs, scores = _assign_nearest(few, many, metric, n_candidates, progress)
    if turned:
        order = np.argsort(pairs[:, 1])
        pairs, scores = pairs[order, ::-1], scores[order]
    return Assignment(pairs, scores, False)


def _assign_all(left: Points, right: Points, metric: Metric) -> Assignment:
    shape = len(left), len(right)
    everyone = np.stack(np.divmod(np.arange(shape[0] * shape[1]), max(shape[1], 1)), axis=1)
    scores = evaluate_pairs(left, right, metric, everyone).score.reshape(shape)
    rows, columns = linear_sum_assignment(scores, maximize=metric.larger_is_better)
    return Assignment(np.stack([rows, columns], axis=1), scores[rows, columns], True)


def _assign_nearest(
    few: Points, many: Points, metric: Metric, n_candidates: int, progress: bool | None
) -> tuple[np.ndarray, np.ndarray]:
    nobody = Exclusions.of(len(few), np.empty(0, np.int64), np.empty(0, np.int64))
    while True:
        n_candidates = min(n_candidates, len(many))
        found = nearest(few, many, metric, n_candidates, nobody, progress=progress)
        costs = metric.sign * found.scores
        # A stored cost must not be 0, and those of a full matching may all be shifted alike.
        shifted = costs - costs.min(initial=0.0) + 1.0
        offsets = np.arange(0, costs.size + 1, n_candidates)
        graph = csr_array((shifted.ravel(), found.positions.flatten(), offsets), shape=(len(few), len(many)))
        graph.sort_indices()
        try:
            rows, columns = min_weight_full_bipartite_matching(graph)
        except ValueError:  # not everyone can be matched
            if n_candidates == len(many):
                raise
            n_candidates *= 2
            continue
        place = (found.positions[rows] == columns[:, None]).argmax(axis=1)
        return np.stack([rows, columns], axis=1).astype(np.int64), found.scores[rows, place]
