"""Exact ranks of given pairs under correlated posteriors."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from corrvae.monitor import Monitor
from corrvae.scoring.correlated.bounds import bounds
from corrvae.scoring.correlated.kernels import choosing, settling
from corrvae.scoring.correlated.sides import pre_activation
from corrvae.scoring.correlated.sweep import Block, Chosen, Goal, Sweep
from corrvae.scoring.found import FoundRanks
from corrvae.scoring.points import Exclusions, Points

# Distances that differ by less than this share of the target's distance + |s_i|^2 + |s_j|^2 are ties.
TIE = 1e-6
# Where fewer than this share of the points are queries, they are swept as rows of their own.
_FEW = 0.1
# Targets whose distances are evaluated at a time.
_TARGETS = 4096


def rank(
    queries: Points,
    candidates: Points,
    pairs: Int[np.ndarray, "pairs 2"],
    exclusions: Exclusions,
    *,
    same: bool,
    memory: int,
    monitor: Monitor,
) -> FoundRanks:
    """Find the rank of each (query, target) pair among the query's candidates by expected distance.

    The targets' distances come first. Then all pairs are swept in blocks; a candidate is evaluated only if some target
    of the query lies between its bounds. Several targets of one query share what is evaluated, and so do both ends of a
    pair where `same`.

    Distances are float32, and equal points may be evaluated in different surroundings that round differently. So
    distances that differ by less than 1e-6 of (the target's distance + |s_i|^2 + |s_j|^2) count as equal, and a
    candidate that equals the target counts as one that comes before it.

    Parameters
    ----------
    queries, candidates
        Points with vectors of one pair network.
    pairs
        Position of the query, position of the target among the candidates.
    exclusions
        Candidates that each query leaves out. A target may be among them.
    same
        Whether queries and candidates are the same points.
    memory
        Bytes that blocks may take, beside the points, their vectors and the result.
    monitor
        Sees the progress, and may ask to stop.

    Examples
    --------
    >>> from corrvae.model import CorrelatedModel
    >>> from corrvae.nn import Decoder, Encoder, FeatureTable, PairBilinear, make_likelihood
    >>> from corrvae.scoring.pair_vectors import PairVectors
    >>> networks = Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6)
    >>> model = CorrelatedModel(*networks, pair_network=PairBilinear(6, 2))
    >>> vectors = PairVectors(model, FeatureTable(np.ones((3, 6))))
    >>> points = Points.of(np.array([[0.0, 0.0], [9.0, 0.0], [2.0, 0.0]]), np.full((3, 2), 0.1), vectors)
    >>> oneself = Exclusions.of(3, np.arange(3), np.arange(3))
    >>> rank(points, points, np.array([[0, 1], [1, 2]]), oneself, same=True, memory=2**20, monitor=Monitor()).ranks
    array([2, 1])
    """
    asking, query_of = np.unique(pairs[:, 0], return_inverse=True)
    if len(asking) == 0:
        return FoundRanks(np.empty(0, np.int64), np.empty(0), 0, 0)
    if same and len(asking) < _FEW * len(queries):
        same = False
    if not same:
        queries, exclusions = queries.take(asking), exclusions.take(asking)
        pairs = np.stack([query_of, pairs[:, 1]], axis=1)
    sweep = Sweep(queries, candidates, same=same, memory=memory, monitor=monitor)
    targets = _Targets.of(queries, candidates, pairs)
    standings = _Standings(targets, exclusions, len(candidates))
    sweep.run("ranking pairs", standings)
    ranks = targets.ranks(standings.steps, ~_excluded(pairs, exclusions, len(candidates)))
    n_pairs = len(asking) * len(candidates)
    if same:  # unordered, with at least one end that asks
        n_silent = len(queries) - len(asking)
        n_pairs = (len(queries) * (len(queries) - 1) - n_silent * (n_silent - 1)) // 2
    return FoundRanks(ranks, targets.scores, min(sweep.n_evaluated, n_pairs), n_pairs)


@final
@dataclass(frozen=True, eq=False)
class _Targets:
    """The targets of each query, nearest first.

    `limits` are the distances up to which a candidate counts as coming before the target; `order` gives the pair of
    each target, `offsets` where a query's targets begin; `scores` are in the order of the pairs.
    """

    offsets: Int[np.ndarray, " boundaries"]
    limits: Float[np.ndarray, " targets"]
    order: Int[np.ndarray, " targets"]
    scores: Float[np.ndarray, " targets"]

    @classmethod
    def of(cls, queries: Points, candidates: Points, pairs: Int[np.ndarray, "targets 2"]) -> "_Targets":
        scores, limits = np.empty(len(pairs)), np.empty(len(pairs), np.float32)
        for begin in range(0, len(pairs), _TARGETS):
            piece = slice(begin, begin + _TARGETS)
            i, j = pairs[piece].T
            correlation = np.tanh(pre_activation(queries, candidates, pairs[piece]).astype(np.float64))
            mean_i, stddev_i = queries.mean[i].astype(np.float64), queries.stddev[i].astype(np.float64)
            mean_j, stddev_j = candidates.mean[j].astype(np.float64), candidates.stddev[j].astype(np.float64)
            spread = (stddev_i**2 + stddev_j**2).sum(1)
            scores[piece] = ((mean_i - mean_j) ** 2 - 2.0 * correlation * stddev_i * stddev_j).sum(1) + spread
            limits[piece] = scores[piece] + TIE * (scores[piece] + spread)
        if np.isnan(limits).any():
            query, target = pairs[np.isnan(limits)][0]
            raise ValueError(f"the distance of query {query} and candidate {target} is not a number")
        order = np.lexsort((limits, pairs[:, 0]))
        offsets = np.zeros(len(queries) + 1, np.int64)
        np.cumsum(np.bincount(pairs[:, 0], minlength=len(queries)), out=offsets[1:])
        return cls(offsets, limits[order], order, scores)

    def ranks(
        self, steps: Int[np.ndarray, " targets"], counted: Bool[np.ndarray, " targets"]
    ) -> Int[np.ndarray, " targets"]:
        """Add up, within each query, who comes before each target; `counted`: whether that includes the target."""
        sums = np.cumsum(steps)
        before = np.concatenate([[0], sums])[self.offsets[:-1]]
        ranks = np.empty(len(steps), np.int64)
        ranks[self.order] = 1 + sums - np.repeat(before, np.diff(self.offsets))
        return ranks - counted


@final
class _Standings(Goal):
    """How many candidates are first counted at each target."""

    def __init__(self, targets: _Targets, exclusions: Exclusions, n_candidates: int) -> None:
        self.steps = np.zeros(len(targets.limits), np.int64)
        self._targets = targets.offsets, targets.limits
        self._exclusions = exclusions.offsets, exclusions.candidates
        self._mark = np.full(n_candidates, -1)

    def choose(self, block: Block) -> Chosen:
        """List the pairs that have a target of one of their ends between their bounds."""
        left, right = block.left, block.right
        found = bounds(left.mean, left.stddev, right.mean, right.stddev)
        undecided = np.zeros(found.lower.shape, np.bool_)
        choosing.mark_undecided(found.lower, found.upper, left.offsets, left.members, *self._targets, undecided)
        if block.mirrored:
            turned = np.zeros(undecided.T.shape, np.bool_)
            lower, upper = np.ascontiguousarray(found.lower.T), np.ascontiguousarray(found.upper.T)
            choosing.mark_undecided(lower, upper, right.offsets, right.members, *self._targets, turned)
            undecided |= turned.T
        rows, columns = np.empty((2, undecided.size), np.int32)
        count = choosing.marked(undecided, block.diagonal, rows, columns)
        return Chosen(rows[:count], columns[:count], found.lower)

    def settle(self, block: Block, chosen: Chosen, costs: Float[np.ndarray, "rows columns"]) -> None:
        """Count the block's candidates for its queries."""
        left, right = block.left, block.right
        state = *self._targets, self.steps, *self._exclusions, self._mark
        settling.count(costs, chosen.lower, left.offsets, left.members, right.offsets, right.members, *state)
        if block.mirrored:
            turned = np.ascontiguousarray(costs.T), np.ascontiguousarray(chosen.lower.T)
            settling.count(*turned, right.offsets, right.members, left.offsets, left.members, *state)


def _excluded(pairs: np.ndarray, exclusions: Exclusions, n_candidates: int) -> np.ndarray:
    """Whether each pair's query leaves its target out."""
    keys = exclusions.queries * n_candidates + exclusions.candidates
    return np.isin(pairs[:, 0] * n_candidates + pairs[:, 1], keys)
