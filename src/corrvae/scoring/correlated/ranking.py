"""Exact ranks of given pairs under correlated posteriors."""

import threading
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from corrvae.monitor import Monitor
from corrvae.ranks import Ranks
from corrvae.scoring.correlated.bounds import bounds
from corrvae.scoring.correlated.kernels import choosing, settling
from corrvae.scoring.correlated.sides import exact_distances, not_a_number
from corrvae.scoring.correlated.sweep import Block, Chosen, Estimates, Goal, Sweep
from corrvae.scoring.found import FoundRanks
from corrvae.scoring.points import Exclusions, Points

# Where fewer than this share of the points are queries, they are swept as rows of their own.
_FEW = 0.1


def rank(
    queries: Points,
    candidates: Points,
    pairs: Int[np.ndarray, "pairs 2"],
    exclusions: Exclusions,
    *,
    same: bool,
    memory: int,
    monitor: Monitor,
    ranks: Ranks | None = None,
) -> FoundRanks:
    """Find the rank of each (query, target) pair among the query's candidates by expected distance.

    The targets' distances come first. Then all pairs are swept in blocks; a candidate is evaluated only if some target
    of the query lies between its bounds. Several targets of one query share what is evaluated, and so do both ends of a
    pair where `same`.

    What counts is each pair's one distance in float64 (`ExactPairs`); a candidate whose distance equals the target's
    counts as one that comes before it, and points that are equal to the bit are equally far. Blocks are evaluated in
    float32, with a bound on their rounding (`PairTiles.errors`); where a target lies within it, the exact distance
    decides. A target is never compared with itself.

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
    ranks
        The processes that divide the blocks among them, and all receive the result.

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
    asking = np.unique(pairs[:, 0])
    if len(asking) == 0:
        return FoundRanks(np.empty(0, np.int64), np.empty(0), 0, 0)
    if same and len(asking) < _FEW * len(queries):
        same = False
    few = None if same or len(asking) == len(queries) else asking
    sweep = Sweep(queries, candidates, same=same, memory=memory, monitor=monitor, asking=few)
    keys, place = np.unique(pairs[:, 0] * np.int64(len(candidates)) + pairs[:, 1], return_inverse=True)
    distinct = np.stack(np.divmod(keys, len(candidates)), axis=1)
    ranks = ranks or Ranks()
    with ranks.agreed():
        targets = _Targets.of(queries, candidates, distinct, monitor)
        # targets are counted by their own distances, all else by the sweep
        themselves = Exclusions.of(len(queries), *distinct.T)
        left_out = Exclusions.union(len(queries), [exclusions, themselves])
        standings = _Standings(sweep, targets, left_out, len(candidates))
    with ranks.agreed():
        sweep.run("ranking pairs", standings, ranks)
    found = targets.ranks(ranks.sum(standings.steps), ~_excluded(distinct, exclusions, len(candidates)))[place]
    n_evaluated = int(ranks.sum(np.array([sweep.n_evaluated]))[0])
    n_pairs = len(asking) * len(candidates)
    if same:  # unordered, with at least one end that asks
        n_silent = len(queries) - len(asking)
        n_pairs = (len(queries) * (len(queries) - 1) - n_silent * (n_silent - 1)) // 2
    return FoundRanks(found, targets.scores[place], min(n_evaluated, n_pairs), n_pairs)


@final
@dataclass(frozen=True, eq=False)
class _Targets:
    """The targets of each query, nearest first.

    `limits` are their distances; `order` gives the pair of each target, `offsets` where a query's targets begin;
    `scores` are the distances in the order of the pairs.
    """

    offsets: Int[np.ndarray, " boundaries"]
    limits: Float[np.ndarray, " targets"]
    order: Int[np.ndarray, " targets"]
    scores: Float[np.ndarray, " targets"]

    @classmethod
    def of(
        cls, queries: Points, candidates: Points, pairs: Int[np.ndarray, "targets 2"], monitor: Monitor
    ) -> "_Targets":
        """Evaluate distinct pairs."""
        scores = exact_distances(queries, candidates, pairs, monitor)
        if np.isnan(scores).any():
            query, target = pairs[np.isnan(scores)][0].tolist()
            raise ValueError(not_a_number(query, target))
        order = np.lexsort((scores, pairs[:, 0]))
        offsets = np.zeros(len(queries) + 1, np.int64)
        np.cumsum(np.bincount(pairs[:, 0], minlength=len(queries)), out=offsets[1:])
        return cls(offsets, scores[order], order, scores)

    def ranks(
        self, steps: Int[np.ndarray, " targets"], counted: Bool[np.ndarray, " targets"]
    ) -> Int[np.ndarray, " targets"]:
        """Add up, within each query, who comes before each target.

        `steps` are of candidates that are no targets; `counted` says which targets are candidates as well.
        """
        numbers = np.arange(len(steps))
        begins = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        new = (numbers == begins) | np.append(True, self.limits[1:] != self.limits[:-1])[: len(steps)]
        # a target counts for itself and for all that are not nearer: from the first that is equally far
        first = np.maximum.accumulate(np.where(new, numbers, 0))
        of_targets = np.bincount(first[counted[self.order]], minlength=len(steps))
        sums = np.cumsum(steps + of_targets)
        before = np.concatenate([[0], sums])[begins]
        ranks = np.empty(len(steps), np.int64)
        ranks[self.order] = 1 + sums - before
        return ranks - counted


@final
class _Standings(Goal):
    """How many candidates are first counted at each target."""

    def __init__(self, sweep: Sweep, targets: _Targets, exclusions: Exclusions, n_candidates: int) -> None:
        self._sweep, self._turn = sweep, threading.Lock()
        self.steps = np.zeros(len(targets.limits), np.int64)
        self._targets = targets.offsets, targets.limits
        self._exclusions = exclusions.offsets, exclusions.candidates
        self._mark = np.full(n_candidates, -1)

    def choose(self, block: Block) -> Chosen:
        """List the pairs that have a target of one of their ends between their bounds."""
        left, right = block.left, block.right
        found = bounds(left.mean, left.stddev, right.mean, right.stddev)
        return Chosen(*self._between(block, found.lower, found.upper), found.lower)

    def settle(self, block: Block, chosen: Chosen, estimates: Estimates) -> None:
        """Count the block's candidates for its queries."""
        left, right = block.left, block.right
        costs = np.full((len(left), len(right)), np.nan)
        # where nothing is known nothing is open: no target is beyond infinity
        lower, upper = np.full((2, *costs.shape), np.inf)
        pairs = chosen.rows, chosen.columns
        choosing.spread(*pairs, estimates.values, block.diagonal, costs)
        choosing.spread(*pairs, estimates.values - estimates.errors, block.diagonal, lower)
        choosing.spread(*pairs, estimates.values + estimates.errors, block.diagonal, upper)
        unclear = self._between(block, lower, upper)
        choosing.spread(*unclear, self._sweep.exact(left, right, *unclear), block.diagonal, costs)
        state = *self._targets, self.steps, *self._exclusions, self._mark
        with self._turn:
            settling.count(costs, chosen.lower, left.offsets, left.members, right.offsets, right.members, *state)
            if block.mirrored:
                turned = np.ascontiguousarray(costs.T), np.ascontiguousarray(chosen.lower.T)
                settling.count(*turned, right.offsets, right.members, left.offsets, left.members, *state)

    def _between(self, block: Block, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """List the pairs that have a target of one of their ends between these numbers."""
        left, right = block.left, block.right
        found = np.zeros(lower.shape, np.bool_)
        choosing.mark_undecided(lower, upper, left.offsets, left.members, *self._targets, found)
        if block.mirrored:
            turned = np.zeros(found.T.shape, np.bool_)
            lower, upper = np.ascontiguousarray(lower.T), np.ascontiguousarray(upper.T)
            choosing.mark_undecided(lower, upper, right.offsets, right.members, *self._targets, turned)
            found |= turned.T
        rows, columns = np.empty((2, found.size), np.int32)
        count = choosing.marked(found, block.diagonal, rows, columns)
        return rows[:count], columns[:count]


def _excluded(pairs: np.ndarray, exclusions: Exclusions, n_candidates: int) -> np.ndarray:
    """Whether each pair's query leaves its target out."""
    keys = exclusions.queries * n_candidates + exclusions.candidates
    return np.isin(pairs[:, 0] * n_candidates + pairs[:, 1], keys)
