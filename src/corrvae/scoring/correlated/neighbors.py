"""Exact nearest neighbours under correlated posteriors."""

from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.monitor import Monitor
from corrvae.scoring.correlated.bounds import lower_bounds
from corrvae.scoring.correlated.kernels import choosing, settling
from corrvae.scoring.correlated.sweep import Block, Chosen, Goal, Sweep
from corrvae.scoring.found import Found
from corrvae.scoring.points import Exclusions, Points

# Candidates first evaluated for each query, as a multiple of the neighbours asked for.
_AHEAD = 3
# Queries that are tried first, at a time; queries of the sample that says whether that is worth while.
_AT_A_TIME, _SAMPLE = 32, 64
# It is, if it leaves no more than this share of the pairs.
_WORTH = 0.9
_NOWHERE = np.iinfo(np.int64).max


def nearest(
    queries: Points,
    candidates: Points,
    n_neighbors: int,
    exclusions: Exclusions,
    *,
    same: bool,
    memory: int,
    monitor: Monitor,
) -> Found:
    """Find each query's candidates of least expected distance, least first.

    First each query tries the candidates with the least lower bounds; the last of the best of these is its reach. Then
    all pairs are swept in blocks, and those whose lower bound is within the reach of one of their ends are evaluated,
    while the reaches shrink. A pair left out has a lower bound above the n-th best distance found, so the result is
    that of evaluating everything.

    Distances are evaluated in float32, with a relative error of about 1e-6 of |mu_i - mu_j|^2 + |s_i|^2 + |s_j|^2;
    candidates closer to each other than that may come in either order. Candidates that are equal to the bit are in the
    order of their positions.

    Parameters
    ----------
    queries, candidates
        Points with vectors of one pair network.
    n_neighbors
        How many candidates each query asks for.
    exclusions
        Candidates that each query leaves out. Where `same`, a query is its own candidate unless excluded.
    same
        Whether queries and candidates are the same points.
    memory
        Bytes that blocks may take, beside the points, their vectors and the result.
    monitor
        Sees the progress, and may ask to stop.

    Returns
    -------
    Found
        With unordered pairs counted where `same`, of which pairs of equal points count as decided.

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
    >>> nearest(points, points, 1, oneself, same=True, memory=2**20, monitor=Monitor()).positions
    array([[2],
           [2],
           [0]])
    """
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, got {n_neighbors}")
    kept = min(n_neighbors, len(candidates))
    n_pairs = len(queries) * (len(queries) - 1) // 2 if same else len(queries) * len(candidates)
    scores = np.full((len(queries), n_neighbors), np.nan)
    positions = np.full((len(queries), n_neighbors), -1)
    if kept == 0 or len(queries) == 0:
        return Found(scores, positions, 0, n_pairs)
    sweep = Sweep(queries, candidates, same=same, memory=memory, monitor=monitor)
    best = _Best(len(queries), len(candidates), kept, exclusions)
    _try_ahead(sweep, best, queries, candidates, kept)
    sweep.run("evaluating pairs", best)
    found = best.positions != _NOWHERE
    scores[:, :kept][found] = best.costs[found]
    positions[:, :kept][found] = best.positions[found]
    return Found(scores, positions, min(sweep.n_evaluated, n_pairs), n_pairs)


@final
class _Best(Goal):
    """The best candidates of each query so far, and how far a candidate may be to matter still."""

    def __init__(self, n_queries: int, n_candidates: int, kept: int, exclusions: Exclusions) -> None:
        self.reach = np.full(n_queries, np.inf, np.float32)
        self._exclusions = exclusions.offsets, exclusions.candidates
        self._mark = np.full(n_candidates, -1)
        self._shape = n_queries, kept
        self.clear()

    def clear(self) -> None:
        """Forget the candidates, but not the reach."""
        self.costs = np.full(self._shape, np.inf, np.float32)
        self.positions = np.full(self._shape, _NOWHERE)

    def choose(self, block: Block) -> Chosen:
        """List the pairs within the reach of one of their ends."""
        left, right = block.left, block.right
        lower = lower_bounds(left.mean, left.stddev, right.mean, right.stddev)
        of_rows = np.maximum.reduceat(self.reach[left.members], left.offsets[:-1])
        of_columns = np.full(len(right), -np.inf, np.float32)
        if block.mirrored or block.diagonal:
            of_columns = np.maximum.reduceat(self.reach[right.members], right.offsets[:-1])
        rows, columns = np.empty((2, lower.size), np.int32)
        count = choosing.within_reach(lower, of_rows, of_columns, block.diagonal, rows, columns)
        return Chosen(rows[:count], columns[:count], lower)

    def settle(self, block: Block, chosen: Chosen, costs: Float[np.ndarray, "rows columns"]) -> None:
        """Offer the block's distances to its queries."""
        left, right = block.left, block.right
        state = self.costs, self.positions, self.reach, *self._exclusions, self._mark
        settling.offer(costs, left.offsets, left.members, right.offsets, right.members, *state)
        if block.mirrored:
            turned = np.ascontiguousarray(costs.T)
            settling.offer(turned, right.offsets, right.members, left.offsets, left.members, *state)


@final
class _Ahead(Goal):
    """The candidates that each query tries first, as a goal for blocks that hold nothing else of use."""

    def __init__(self, best: _Best, places: Int[np.ndarray, "rows ahead"], lower: Float[np.ndarray, "rows columns"]):
        self._best, self._places, self._lower = best, places, lower

    def choose(self, block: Block) -> Chosen:
        rows = np.repeat(np.arange(len(block.left), dtype=np.int32), self._places.shape[1])
        return Chosen(rows, self._places.reshape(-1).astype(np.int32), self._lower)

    def settle(self, block: Block, chosen: Chosen, costs: Float[np.ndarray, "rows columns"]) -> None:
        self._best.settle(block, chosen, costs)


def _try_ahead(sweep: Sweep, best: _Best, queries: Points, candidates: Points, kept: int) -> None:
    """Set each query's reach by the candidates with the least lower bounds, if that spares enough of the pairs."""
    n_groups, ahead = len(sweep.left_groups), _AHEAD * kept
    if 4 * ahead > len(sweep.right_groups):
        return
    right = sweep.right_groups.representatives
    mean, stddev = candidates.mean[right], candidates.stddev[right]
    left = sweep.left_groups.representatives
    # room for another evaluation of the same pair that rounds differently
    largest = np.square(stddev, dtype=np.float64).sum(1).max()
    sample = np.unique(np.linspace(0, n_groups - 1, min(n_groups, _SAMPLE)).astype(np.int64))
    spared = np.zeros(n_groups)

    def bounds_of(groups: np.ndarray) -> np.ndarray:
        return lower_bounds(queries.mean[left[groups]], queries.stddev[left[groups]], mean, stddev)

    def work(groups: np.ndarray) -> None:
        lower = bounds_of(groups)
        tried = np.argpartition(lower, ahead, axis=1)[:, :ahead]
        columns, places = np.unique(tried, return_inverse=True)
        sides = sweep.read_left(groups), sweep.read_right(columns)
        goal = _Ahead(best, places.reshape(tried.shape), lower[:, columns])
        sweep.evaluate(Block(groups, columns, *sides, False, False), goal)
        reach = np.maximum.reduceat(best.reach[sides[0].members], sides[0].offsets[:-1])
        spared[groups] = (lower > reach[:, None]).mean(1)

    def run(label: str, groups: np.ndarray) -> None:
        sweep.monitor.phase(label, len(groups) * ahead)
        sweep.each(np.split(groups, range(_AT_A_TIME, len(groups), _AT_A_TIME)), work)

    run("sampling the bounds", sample)
    if spared[sample].mean() >= 1.0 - _WORTH:
        run("trying the nearest bounds", np.setdiff1d(np.arange(n_groups), sample))
    best.reach += 1e-5 * (best.reach + largest + np.square(queries.stddev, dtype=np.float64).sum(1)).astype(np.float32)
    best.clear()
