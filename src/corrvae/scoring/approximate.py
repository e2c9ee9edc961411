"""Neighbours among candidates that an index proposes, and the share of true ones found: for many points in a hurry."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Int

from corrvae.monitor import DONE, Monitor, watch
from corrvae.scoring.evaluation import evaluate_pairs
from corrvae.scoring.found import Found
from corrvae.scoring.metrics import Metric
from corrvae.scoring.neighbors import MEMORY, is_correlated, nearest
from corrvae.scoring.points import Exclusions, Points

# Candidates proposed for each neighbour asked for; queries that the recall is measured on; queries at a time.
_PROPOSED, _SAMPLE, _QUERIES = 8, 200, 1024


@final
@dataclass(frozen=True, eq=False)
class ApproximateFound:
    """Neighbours that may not be the best.

    Attributes
    ----------
    found
        The neighbours; their scores are as exact as ever.
    recall
        The share of true neighbours among them, measured on a random sample of the queries by an exact search.
    """

    found: Found
    recall: float


def nearest_approximately(
    queries: Points,
    candidates: Points,
    metric: Metric,
    n_neighbors: int,
    exclusions: Exclusions,
    *,
    memory: int = MEMORY,
    progress: bool | None = None,
) -> ApproximateFound:
    """Find good candidates of each query by a graph index (usearch), score these exactly, and measure the recall.

    Parameters
    ----------
    queries, candidates, metric, n_neighbors, exclusions, memory, progress
        As in `corrvae.scoring.neighbors.nearest`.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> points = Points.of(np.random.default_rng(0).normal(size=(500, 4)), np.ones((500, 4)))
    >>> myself = Exclusions.of(500, np.arange(500), np.arange(500))
    >>> nearest_approximately(points, points, MeanDistance(), 5, myself).recall > 0.9
    True
    """
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be positive, got {n_neighbors}")
    # What most queries exclude is proposed too, and must leave enough.
    excluded = int(np.quantile(exclusions.counts, 0.9)) if len(queries) else 0
    n_proposed = min(_PROPOSED * n_neighbors + excluded, len(candidates))

    def work(monitor: Monitor) -> Found:
        as_queries, as_candidates = metric.proxies(queries, candidates)
        monitor.phase("index")
        index = _index(as_candidates, n_proposed)
        monitor.phase("neighbours", len(queries))
        found = []
        for begin in range(0, len(queries), _QUERIES):
            rows = np.arange(begin, min(begin + _QUERIES, len(queries)))
            keys = _propose(index, as_queries[rows], n_proposed)
            found.append(_best(queries, candidates, metric, rows, keys, n_neighbors, exclusions.take(rows)))
            monitor.check()
            monitor.control[DONE] = rows[-1] + 1
        return _join(found, n_neighbors, len(candidates), exclusions)

    found = watch(work, progress=progress)
    sample = np.sort(np.random.default_rng(0).permutation(len(queries))[:_SAMPLE])
    asked = queries.take(sample)
    truth = nearest(asked, candidates, metric, n_neighbors, exclusions.take(sample), memory=memory, progress=progress)
    there = (truth.positions[:, :, None] == found.positions[sample][:, None, :]).any(axis=2) & (truth.positions >= 0)
    return ApproximateFound(found, float(there.sum() / max(1, (truth.positions >= 0).sum())))


def _index(vectors: np.ndarray, n_proposed: int) -> Any:
    try:
        usearch = import_module("usearch.index")
    except ImportError as error:
        raise ImportError("approximate=True needs the package usearch: pip install 'corrvae[index]'") from error
    expansion = max(128, n_proposed)
    index = usearch.Index(ndim=vectors.shape[1], metric="l2sq", dtype="f32", expansion_search=expansion)
    index.add(np.arange(len(vectors)), np.ascontiguousarray(vectors), threads=torch.get_num_threads())
    return index


def _propose(index: Any, vectors: np.ndarray, n_proposed: int) -> Int[np.ndarray, "queries proposed"]:
    """Give positions of candidates, -1 where the index finds no more."""
    found = index.search(np.ascontiguousarray(vectors), n_proposed, threads=torch.get_num_threads())
    keys = np.asarray(found.keys).astype(np.int64).reshape(len(vectors), -1)
    counts = np.asarray(getattr(found, "counts", np.full(len(vectors), keys.shape[1])))
    return np.where(np.arange(keys.shape[1]) < counts.reshape(-1, 1), keys, -1)


def _best(
    queries: Points,
    candidates: Points,
    metric: Metric,
    rows: np.ndarray,
    keys: np.ndarray,
    n_neighbors: int,
    left_out: Exclusions,
) -> Found:
    costs = np.full(keys.shape, np.inf)
    codes = np.arange(len(rows))[:, None] * len(candidates) + keys
    admitted = (keys >= 0) & ~np.isin(codes, left_out.queries * len(candidates) + left_out.candidates)
    pairs = np.stack([np.broadcast_to(rows[:, None], keys.shape)[admitted], keys[admitted]], axis=1)
    costs[admitted] = metric.sign * evaluate_pairs(queries, candidates, metric, pairs).score
    order = np.lexsort((keys, costs), axis=1)[:, :n_neighbors]
    best, positions = np.take_along_axis(costs, order, axis=1), np.take_along_axis(keys, order, axis=1)
    positions = np.where(np.isinf(best), -1, positions)
    scores = np.where(positions < 0, np.nan, metric.sign * best)
    return Found(scores, positions, len(pairs) if is_correlated(queries, candidates, metric) else 0, 0)


def _join(found: list[Found], n_neighbors: int, n_candidates: int, exclusions: Exclusions) -> Found:
    n_queries = len(exclusions.counts)
    scores, positions = np.full((n_queries, n_neighbors), np.nan), np.full((n_queries, n_neighbors), -1)
    begin = 0
    for piece in found:
        rows, width = slice(begin, begin + len(piece.scores)), piece.scores.shape[1]
        scores[rows, :width], positions[rows, :width] = piece.scores, piece.positions
        begin = rows.stop
    n_pairs = n_queries * n_candidates - len(exclusions.candidates)
    return Found(scores, positions, sum(piece.n_evaluated for piece in found), n_pairs)
