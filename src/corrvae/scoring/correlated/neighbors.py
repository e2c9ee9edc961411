"""Exact nearest neighbours under correlated posteriors."""

import threading
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.monitor import Monitor
from corrvae.ranks import Ranks
from corrvae.scoring.correlated.ahead import BoundSearch
from corrvae.scoring.correlated.bounds import lower_bounds
from corrvae.scoring.correlated.kernels import choosing, settling
from corrvae.scoring.correlated.pool import NOWHERE, Pool
from corrvae.scoring.correlated.sides import Side
from corrvae.scoring.correlated.sweep import Block, Chosen, Estimates, Goal, Sweep
from corrvae.scoring.found import Found
from corrvae.scoring.points import Exclusions, Points

# Candidates first evaluated for each query, as a multiple of the neighbours asked for.
_AHEAD = 3
# Groups of queries whose bounds are formed at a time, and whose first candidates are evaluated at a time.
_BOUNDED, _EVALUATED = 512, 32
# Groups of the sample that says whether trying is worth while.
_SAMPLE = 64
# It is, if it leaves no more than this share of the pairs.
_WORTH = 0.9


def nearest(
    queries: Points,
    candidates: Points,
    n_neighbors: int,
    exclusions: Exclusions,
    *,
    same: bool,
    memory: int,
    monitor: Monitor,
    ranks: Ranks | None = None,
) -> Found:
    """Find each query's candidates of least expected distance, least first.

    First each query tries the candidates with the least lower bounds; the last of the best of these is its reach. Then
    all pairs are swept in blocks, and those whose lower bound is within the reach of one of their ends are evaluated,
    while the reaches shrink. A pair left out has a lower bound above the n-th best distance, so the result is that of
    evaluating everything.

    What counts is each pair's one distance in float64 (`ExactPairs`), and of equally distant candidates the smaller
    position. Blocks are evaluated in float32, with a bound on their rounding (`PairTiles.errors`); all pairs that may
    be among the best for what these say are evaluated exactly at the end, and exact distances are what is returned.

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
    ranks
        The processes that divide the blocks among them, and all receive the result.

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
    best = _Best(sweep, len(queries), len(candidates), kept, exclusions, memory)
    search = BoundSearch(
        queries,
        candidates,
        sweep.left_groups,
        sweep.right_groups,
        n_rows=_BOUNDED,
        memory=memory // (2 * sweep.n_threads),
    )
    ranks = ranks or Ranks()
    _try_ahead(sweep, best, search, _AHEAD * kept, memory, ranks)
    with ranks.agreed():
        sweep.run("evaluating pairs", best, ranks)
        costs, places = best.pool.best()
    costs, places = _merged(costs, places, ranks)
    n_evaluated = int(ranks.sum(np.array([sweep.n_evaluated]))[0])
    found = places != NOWHERE
    scores[:, :kept][found] = costs[found]
    positions[:, :kept][found] = places[found]
    return Found(scores, positions, min(n_evaluated, n_pairs), n_pairs)


def _merged(
    costs: Float[np.ndarray, "queries kept"], places: Int[np.ndarray, "queries kept"], ranks: Ranks
) -> tuple[Float[np.ndarray, "queries kept"], Int[np.ndarray, "queries kept"]]:
    """Give each query's best of what all ranks found in their blocks."""
    if ranks.count == 1:
        return costs, places
    kept = costs.shape[1]
    found, where = (np.concatenate(ranks.gather(part), axis=1) for part in (costs, places))
    order = np.lexsort([where, found])[:, :kept]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(where, order, axis=1)


@final
class _Best(Goal):
    """What may be among the best of each query, and how far a candidate may be to matter still.

    `upper` holds the least numbers that distances of as many candidates are known not to exceed; the last of them is
    the reach.
    """

    def __init__(
        self, sweep: Sweep, n_queries: int, n_candidates: int, kept: int, exclusions: Exclusions, memory: int
    ) -> None:
        self.reach = np.full(n_queries, np.inf)
        self.pool = Pool(sweep, self.reach, kept, exclusions, n_candidates, memory)
        self._exclusions = exclusions.offsets, exclusions.candidates
        self._mark = np.full(n_candidates, -1)
        self._shape = n_queries, kept
        self._turn = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget the candidates, but not the reach."""
        self._upper = np.full(self._shape, np.inf)
        self._positions = np.full(self._shape, NOWHERE)

    def lower(self, reach: Float[np.ndarray, " queries"]) -> None:
        """Take in what others know of the reaches."""
        np.minimum(self.reach, reach, out=self.reach)

    def reach_of(self, side: Side) -> Float[np.ndarray, " groups"]:
        """Give how far the farthest-reaching member of each group reaches."""
        return np.maximum.reduceat(self.reach[side.members], side.offsets[:-1])

    def choose(self, block: Block) -> Chosen:
        """List the pairs within the reach of one of their ends."""
        left, right = block.left, block.right
        lower = lower_bounds(left.mean, left.stddev, right.mean, right.stddev)
        both = block.mirrored or block.diagonal
        of_columns = self.reach_of(right) if both else np.full(len(right), -np.inf)
        rows, columns = np.empty((2, lower.size), np.int32)
        count = choosing.within_reach(lower, self.reach_of(left), of_columns, block.diagonal, rows, columns)
        return Chosen(rows[:count], columns[:count], lower)

    def settle(self, block: Block, chosen: Chosen, estimates: Estimates) -> None:
        """Lower the reaches, and keep what is within them."""
        self.lower_reach(block, chosen, estimates)
        lower = estimates.values - estimates.errors
        here = lower <= self.reach_of(block.left)[chosen.rows]
        kept = [(block.rows[chosen.rows[here]], block.columns[chosen.columns[here]], lower[here])]
        if block.mirrored or block.diagonal:
            there = lower <= self.reach_of(block.right)[chosen.columns]
            if block.diagonal:
                there &= chosen.rows != chosen.columns
            kept.append((block.columns[chosen.columns[there]], block.rows[chosen.rows[there]], lower[there]))
        with self._turn:
            for pairs in kept:
                self.pool.add(*pairs)

    def lower_reach(self, block: Block, chosen: Chosen, estimates: Estimates) -> None:
        """Take in the most that distances can be."""
        left, right = block.left, block.right
        upper = np.full((len(left), len(right)), np.nan)
        choosing.spread(chosen.rows, chosen.columns, estimates.values + estimates.errors, block.diagonal, upper)
        state = self._upper, self._positions, self.reach, *self._exclusions, self._mark
        with self._turn:
            settling.offer(upper, left.offsets, left.members, right.offsets, right.members, *state)
            if block.mirrored:
                turned = np.ascontiguousarray(upper.T)
                settling.offer(turned, right.offsets, right.members, left.offsets, left.members, *state)


@final
class _Ahead(Goal):
    """The candidates that each query tries first, for the sake of its reach alone."""

    def __init__(self, best: _Best, places: Int[np.ndarray, "rows ahead"]) -> None:
        self._best, self._places = best, places

    def choose(self, block: Block) -> Chosen:
        rows = np.repeat(np.arange(len(block.left), dtype=np.int32), self._places.shape[1])
        nothing = np.empty((0, 0), np.float32)
        return Chosen(rows, self._places.reshape(-1).astype(np.int32), nothing)

    def settle(self, block: Block, chosen: Chosen, estimates: Estimates) -> None:
        self._best.lower_reach(block, chosen, estimates)


def _try_ahead(sweep: Sweep, best: _Best, search: BoundSearch, ahead: int, memory: int, ranks: Ranks) -> None:
    """Set each query's reach by the candidates with the least lower bounds, if that spares enough of the pairs.

    The ranks divide the queries, and tell each other the reaches.
    """
    n_groups = len(sweep.left_groups)
    if 4 * ahead > len(sweep.right_groups):
        return
    sample = np.unique(np.linspace(0, n_groups - 1, min(n_groups, _SAMPLE)).astype(np.int64))
    # the candidates of all rows of a block may be different ones
    n_rows = int(np.clip(memory // (2 * sweep.n_threads * ahead * sweep.bytes_of_row), 1, _EVALUATED))

    def work(groups: np.ndarray) -> None:
        tried = search.least(groups, ahead)
        for begin in range(0, len(groups), n_rows):
            piece = slice(begin, begin + n_rows)
            columns, places = np.unique(tried[piece], return_inverse=True)
            sides = sweep.read_left(groups[piece]), sweep.read_right(columns)
            goal = _Ahead(best, places.reshape(-1, ahead))
            sweep.evaluate(Block(groups[piece], columns, *sides, False, False), goal)
            sweep.count(ahead * len(groups[piece]))

    def run(label: str, groups: np.ndarray) -> None:
        sweep.monitor.phase(label, ahead * len(groups))
        # smaller pieces where there would be fewer than threads
        size = min(_BOUNDED, -(-len(groups) // sweep.n_threads))
        sweep.each(np.split(groups, range(size, len(groups), max(1, size))), work)

    with ranks.agreed():
        run("sampling the bounds", sample)
        worth = search.share_beyond(sample, best.reach_of(sweep.read_left(sample))) >= 1.0 - _WORTH
    if ranks.tell(bool(worth)):
        rest = np.setdiff1d(np.arange(n_groups), sample)
        with ranks.agreed():
            run("trying the nearest bounds", rest[ranks.share(len(rest))])
        best.lower(np.minimum.reduce(ranks.gather(best.reach)))
    best.clear()
