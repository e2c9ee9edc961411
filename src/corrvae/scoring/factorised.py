"""Exact neighbours and ranks where a pair's score needs no correlation.

Blocks of costs come in float32. Only what their error leaves open is evaluated in float64, which decides.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from jaxtyping import Int

from corrvae.monitor import DONE, Monitor
from corrvae.scoring.blocks import Blocks, pieces
from corrvae.scoring.found import Found, FoundRanks
from corrvae.scoring.kernels import selection
from corrvae.scoring.metrics import Metric, side
from corrvae.scoring.points import Exclusions, Points

# A block of this size stays in the cache between the product and the look through it.
_ROWS, _COLUMNS = 512, 4096


def nearest(
    queries: Points,
    candidates: Points,
    metric: Metric,
    n_neighbors: int,
    exclusions: Exclusions,
    *,
    memory: int,
    monitor: Monitor,
) -> Found:
    """Find the best candidates of each query; of equal ones, those of smaller position.

    Parameters
    ----------
    queries, candidates
        The points; correlations are not looked at.
    metric
        The score.
    n_neighbors
        How many candidates.
    exclusions
        Candidates that queries leave out.
    memory
        Bytes for blocks of costs.
    monitor
        Shows progress, and asks to stop.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> points = Points.of(np.array([[0.0], [1.0], [3.0]]), np.ones((3, 1)))
    >>> nothing = Exclusions.of(3, np.arange(3), np.arange(3))
    >>> found = nearest(points, points, MeanDistance(), 1, nothing, memory=2**20, monitor=Monitor())
    >>> found.positions.ravel(), found.scores.ravel()
    (array([1, 0, 1]), array([1., 1., 4.]))
    """
    # In random order, so that good candidates come early and few are evaluated only to be replaced.
    order = np.random.default_rng(0).permutation(len(candidates))
    shuffled = Points(candidates.mean[order], candidates.stddev[order])
    blocks = metric.blocks(queries, shuffled)
    costs = np.full((len(queries), n_neighbors), np.inf)
    positions = np.full(costs.shape, -1)
    left, right = side(queries), side(candidates)

    def keep(block: np.ndarray, error: np.ndarray, first_row: int, columns: slice) -> None:
        sides = metric.for_kernels, left, right
        excluded = exclusions.offsets, exclusions.candidates
        selection.keep_best(block, error, first_row, order[columns], *sides, *excluded, costs, positions)

    monitor.phase("neighbours", len(queries))
    _sweep(blocks, len(queries), len(candidates), keep, memory, monitor)
    scores = np.where(positions < 0, np.nan, metric.sign * costs)
    return Found(scores, positions, 0, len(queries) * len(candidates) - len(exclusions.candidates))


def rank(
    queries: Points,
    candidates: Points,
    metric: Metric,
    pairs: Int[np.ndarray, "pairs 2"],
    exclusions: Exclusions,
    *,
    memory: int,
    monitor: Monitor,
) -> FoundRanks:
    """Rank targets among all candidates of their queries; a candidate with an equal score comes before the target.

    Parameters
    ----------
    queries, candidates, metric, exclusions, memory, monitor
        As in `nearest`.
    pairs
        Positions of a query and of its target, in any order.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> points = Points.of(np.array([[0.0], [1.0], [3.0]]), np.ones((3, 1)))
    >>> myself = Exclusions.of(3, np.arange(3), np.arange(3))
    >>> pairs = np.array([[0, 2], [2, 1]])
    >>> rank(points, points, MeanDistance(), pairs, myself, memory=2**20, monitor=Monitor()).ranks
    array([2, 1])
    """
    asked, query_of = np.unique(pairs[:, 0], return_inverse=True)
    by_query = np.argsort(query_of, kind="stable")
    targets = pairs[by_query, 1].astype(np.int64)
    offsets = np.zeros(len(asked) + 1, np.int64)
    np.cumsum(np.bincount(query_of, minlength=len(asked)), out=offsets[1:])
    asking = Points(queries.mean[asked], queries.stddev[asked])
    left_out = exclusions.take(asked)
    scores = metric.parts(queries, candidates, pairs).score
    costs = metric.sign * scores[by_query]
    counts = np.zeros(len(pairs), np.int64)
    blocks = metric.blocks(asking, candidates)
    left, right = side(asking), side(candidates)

    def count(block: np.ndarray, error: np.ndarray, first_row: int, columns: slice) -> None:
        sides = metric.for_kernels, left, right
        selection.count_as_good(block, error, first_row, columns.start, *sides, offsets, costs, counts)

    monitor.phase("ranks", len(asked))
    _sweep(blocks, len(asked), len(candidates), count, memory, monitor)
    excluded = left_out.offsets, left_out.candidates
    selection.count_excluded(metric.for_kernels, left, right, offsets, targets, *excluded, costs, counts)
    ranks = np.empty(len(pairs), np.int64)
    ranks[by_query] = 1 + counts
    return FoundRanks(ranks, scores, 0, len(asked) * len(candidates) - len(left_out.candidates))


def _sweep(
    blocks: Blocks,
    n_rows: int,
    n_columns: int,
    work: Callable[[np.ndarray, np.ndarray, int, slice], None],
    memory: int,
    monitor: Monitor,
) -> None:
    """Call `work` with pieces of every block, on all cores: costs, their error, the first row, the columns."""
    size = int(np.clip(memory // (4 * _COLUMNS), 1, _ROWS))
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for rows in _slices(n_rows, size):
            for columns in _slices(n_columns, _COLUMNS):
                block, error = blocks.costs(rows, columns, pool), blocks.error(rows, columns)
                parts = pieces(len(block))
                calls = [(block[part], error[part], rows.start + part.start, columns) for part in parts]
                for call in [pool.submit(work, *call) for call in calls]:
                    call.result()
                monitor.check()
            monitor.control[DONE] = rows.stop


def _slices(length: int, size: int) -> Iterator[slice]:
    return (slice(begin, min(begin + size, length)) for begin in range(0, length, size))
