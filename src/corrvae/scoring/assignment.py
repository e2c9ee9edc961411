"""One-to-one matching: the pairs whose scores are best in sum, where no point is in two pairs."""

import numbers
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from corrvae.monitor import DONE, Monitor, watch
from corrvae.scoring.evaluation import evaluate_pairs
from corrvae.scoring.metrics import Metric
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions, Points

# Up to here all pairs are scored; beyond, each point's nearest candidates.
_MOST_PAIRS, _CANDIDATES = 4_000_000, 50
# Pairs scored at a time.
_PAIRS = 262_144


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
        Whether no other one-to-one matching has a better sum.
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
    given, only the best candidates of each point are, from either side; points for which these leave no partner are
    then compared among each other. The matching is the best among the pairs admitted, and none of its scores is
    approximate. It is the best of all if there are as many candidates as points on the smaller side.

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
    n_candidates = _check_candidates(n_candidates)
    if n_candidates is None and len(left) * len(right) > _MOST_PAIRS:
        n_candidates = _CANDIDATES
    if n_candidates is None or n_candidates >= max(len(left), len(right)):
        return _assign_all(left, right, metric, progress)
    turned = len(left) > len(right)
    few, many = (right, left) if turned else (left, right)
    # A point whose partner is none of its `len(few)` best could take one of those instead, as not all are taken.
    exact = n_candidates >= len(few)
    pairs = _assign_nearest(few, many, metric, len(few) if exact else n_candidates, progress)
    if turned:
        pairs = pairs[np.argsort(pairs[:, 1]), ::-1]
    return Assignment(pairs, evaluate_pairs(left, right, metric, pairs).score, exact)


def _check_candidates(n_candidates: Any) -> int | None:
    if n_candidates is None:
        return None
    if not isinstance(n_candidates, numbers.Integral) or isinstance(n_candidates, bool):
        raise TypeError(f"n_candidates must be an integer or None, got {n_candidates!r}")
    if n_candidates < 1:
        raise ValueError(f"n_candidates must be positive, got {n_candidates}")
    return int(n_candidates)


def _assign_all(left: Points, right: Points, metric: Metric, progress: bool | None) -> Assignment:
    shape = len(left), len(right)

    def work(monitor: Monitor) -> np.ndarray:
        scores = np.empty(shape[0] * shape[1])
        monitor.phase("scores of pairs", len(scores))
        for begin in range(0, len(scores), _PAIRS):
            piece = np.arange(begin, min(begin + _PAIRS, len(scores)))
            pairs = np.stack(np.divmod(piece, shape[1]), axis=1)
            scores[piece] = evaluate_pairs(left, right, metric, pairs).score
            monitor.check()
            monitor.control[DONE] = piece[-1] + 1
        return scores.reshape(shape)

    scores = watch(work, progress=progress)
    rows, columns = linear_sum_assignment(scores, maximize=metric.larger_is_better)
    return Assignment(np.stack([rows, columns], axis=1), scores[rows, columns], True)


@final
@dataclass(frozen=True, eq=False)
class _Admitted:
    """Pairs (position among the few, position among the many) and their costs; they may repeat."""

    pairs: Int[np.ndarray, "pairs 2"]
    costs: Float[np.ndarray, " pairs"]

    def joined(self, other: "_Admitted") -> "_Admitted":
        return _Admitted(np.concatenate([self.pairs, other.pairs]), np.concatenate([self.costs, other.costs]))

    def placed(self, few: np.ndarray, many: np.ndarray) -> "_Admitted":
        """Give pairs of positions in two selections as pairs of the points selected."""
        return _Admitted(np.stack([few[self.pairs[:, 0]], many[self.pairs[:, 1]]], axis=1), self.costs)

    def graph(self, shape: tuple[int, int]) -> csr_array:
        _, first = np.unique(self.pairs[:, 0] * shape[1] + self.pairs[:, 1], return_index=True)
        # A stored cost must not be 0, and those of a full matching may all be shifted alike.
        shifted = self.costs[first] - self.costs.min(initial=0.0) + 1.0
        return csr_array((shifted, tuple(self.pairs[first].T)), shape=shape)


def _assign_nearest(few: Points, many: Points, metric: Metric, n_candidates: int, progress: bool | None) -> np.ndarray:
    """Match all of the few among the nearest candidates of both sides, and among each other where that fails."""
    shape = len(few), len(many)
    admitted = _admit_nearest(few, many, metric, n_candidates, progress)
    partner = maximum_bipartite_matching(admitted.graph(shape), perm_type="column")
    alone = np.flatnonzero(partner < 0)
    if len(alone):
        free = np.setdiff1d(np.arange(len(many)), partner)
        parts = few.take(alone), many.take(free)
        if len(alone) * len(free) <= _MOST_PAIRS:
            more = _admit(*parts, metric, np.stack(np.divmod(np.arange(len(alone) * len(free)), len(free)), axis=1))
        else:
            more = _admit_nearest(*parts, metric, n_candidates, progress)
            more = more.joined(_admit(*parts, metric, _side_by_side(*parts)))
        admitted = admitted.joined(more.placed(alone, free))
    rows, columns = min_weight_full_bipartite_matching(admitted.graph(shape))
    return np.stack([rows, columns], axis=1).astype(np.int64)


def _admit(few: Points, many: Points, metric: Metric, pairs: Int[np.ndarray, "pairs 2"]) -> _Admitted:
    return _Admitted(pairs, metric.sign * evaluate_pairs(few, many, metric, pairs).score)


def _admit_nearest(few: Points, many: Points, metric: Metric, n_candidates: int, progress: bool | None) -> _Admitted:
    """Admit the nearest candidates of the few, and of the many in all about as many, unless the former are enough."""
    found = nearest(few, many, metric, min(n_candidates, len(many)), Exclusions.none(len(few)), progress=progress)
    own = np.repeat(np.arange(len(few)), found.positions.shape[1])
    admitted = _Admitted(np.stack([own, found.positions.ravel()], axis=1), metric.sign * found.scores.ravel())
    if n_candidates >= len(few):
        return admitted
    width = -(-n_candidates * len(few) // len(many))
    found = nearest(many, few, metric, width, Exclusions.none(len(many)), progress=progress)
    own = np.repeat(np.arange(len(many)), width)
    other = _Admitted(np.stack([found.positions.ravel(), own], axis=1), metric.sign * found.scores.ravel())
    return admitted.joined(other)


def _side_by_side(few: Points, many: Points) -> Int[np.ndarray, "few 2"]:
    """Pair the points in the order of the means along the direction in which these differ most."""
    means = np.concatenate([few.mean, many.mean]).astype(np.float64)
    centred = means - means.mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    one, other = np.argsort(few.mean @ direction), np.argsort(many.mean @ direction)
    return np.stack([one, other[np.arange(len(few)) * len(many) // len(few)]], axis=1)
