"""Links ranked by a posterior that reads the graph: exactly among candidates, all others in the order of a first stage.

The candidates of a vertex are the best that short paths reach, and others by likeness and by weight. Vertices
that the graph links already are no candidates.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from corrvae.model.families import EvidencePosterior
from corrvae.model.posterior import Posterior
from corrvae.scoring.metrics import Metric

# Vertices whose candidates are scored together.
_ROWS = 64


def read_graph(
    queries: Posterior, candidates: Posterior, metric: Metric
) -> tuple[EvidencePosterior, EvidencePosterior] | None:
    """Return the points if the metric is the log-odds that they read from the graph, otherwise ``None``."""
    if (
        metric.name == "log_odds"
        and isinstance(queries, EvidencePosterior)
        and isinstance(candidates, EvidencePosterior)
    ):
        return queries, candidates
    return None


def score_links(
    queries: EvidencePosterior, candidates: EvidencePosterior, pairs: Int[np.ndarray, "pairs 2"]
) -> Float[np.ndarray, " pairs"]:
    """Return the log-odds of links, up to a constant."""
    return queries.link_scores(np.stack([queries.rows[pairs[:, 0]], candidates.rows[pairs[:, 1]]], axis=1))


def nearest_links(
    queries: EvidencePosterior, candidates: EvidencePosterior, k: int, exclude: csr_array | None
) -> tuple[Int[np.ndarray, "queries k"], Float[np.ndarray, "queries k"]]:
    """Find the k likeliest links of each query; -1 and not-a-number where it has fewer candidates."""
    positions, scores = np.full((len(queries), k), -1), np.full((len(queries), k), np.nan)
    for rows, columns, found in _scored(queries, candidates, np.arange(len(queries)), exclude):
        best = np.argsort(-found, axis=1, kind="stable")[:, :k]
        there = np.isfinite(np.take_along_axis(found, best, axis=1))
        width = best.shape[1]
        positions[rows, :width] = np.where(there, np.take_along_axis(columns, best, axis=1), -1)
        scores[rows, :width] = np.where(there, np.take_along_axis(found, best, axis=1), np.nan)
    return positions, scores


def rank_links(
    queries: EvidencePosterior,
    candidates: EvidencePosterior,
    pairs: Int[np.ndarray, "pairs 2"],
    exclude: csr_array | None,
) -> tuple[Int[np.ndarray, " pairs"], Float[np.ndarray, " pairs"]]:
    """Rank the target of each pair; one that is no candidate comes behind them, in the order of the first stage."""
    ranks = np.empty(len(pairs), np.int64)
    order = np.argsort(pairs[:, 0], kind="stable")
    asked, begins = np.unique(pairs[order, 0], return_index=True)
    ends = np.append(begins[1:], len(pairs))
    for rows, columns, found in _scored(queries, candidates, asked, exclude):
        for place, row in enumerate(rows):
            at = np.searchsorted(asked, row)
            mine, own = columns[place], found[place]
            open_ones, first_stage = np.isfinite(own), None
            closed = np.zeros(len(candidates), bool)
            closed[mine[open_ones]] = True
            if exclude is not None:
                closed[exclude.indices[exclude.indptr[row] : exclude.indptr[row + 1]]] = True
            for pair in order[begins[at] : ends[at]]:
                target = pairs[pair, 1]
                where = np.flatnonzero((mine == target) & open_ones)
                if len(where):
                    ranks[pair] = (own >= own[where[0]]).sum()
                    continue
                if first_stage is None:
                    first_stage = queries.features.remaining_order(int(queries.rows[row]))[candidates.rows]
                others = (first_stage >= first_stage[target]) & ~closed
                others[target] = True
                ranks[pair] = open_ones.sum() + others.sum()
    return ranks, score_links(queries, candidates, pairs)


def best_links(
    points: EvidencePosterior, n_pairs: int, exclude: csr_array | None
) -> tuple[Int[np.ndarray, "pairs 2"], Float[np.ndarray, " pairs"]]:
    """Find the likeliest links of all."""
    codes, scores = np.empty(0, np.int64), np.empty(0)
    for rows, columns, found in _scored(points, points, np.arange(len(points)), exclude):
        there = np.isfinite(found)
        first, second = np.broadcast_to(rows[:, None], found.shape)[there], columns[there]
        new = np.minimum(first, second) * len(points) + np.maximum(first, second)
        codes, places = np.unique(np.concatenate([codes, new]), return_index=True)
        scores = np.concatenate([scores, found[there]])[places]
        kept = np.sort(np.argsort(-scores, kind="stable")[:n_pairs])
        codes, scores = codes[kept], scores[kept]
    best = np.argsort(-scores, kind="stable")
    return np.stack(np.divmod(codes[best], len(points)), axis=1), scores[best]


def candidate_recall(points: EvidencePosterior, pairs: Int[np.ndarray, "pairs 2"]) -> float:
    """Return the share of pairs whose second point is a candidate of the first."""
    n_found, order = 0, np.argsort(pairs[:, 0], kind="stable")
    for begin in range(0, len(pairs), _ROWS):
        vertices, others = points.rows[pairs[order[begin : begin + _ROWS]]].T
        asked, places = np.unique(vertices, return_inverse=True)
        n_found += (points.retrieve(asked).positions[places] == others[:, None]).any(axis=1).sum()
    return n_found / len(pairs)


def _scored(
    queries: EvidencePosterior, candidates: EvidencePosterior, asked: np.ndarray, exclude: csr_array | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Go through queries: which they are, their candidates as positions, and scores, -inf where there is none."""
    column_of = np.full(queries.features.graph.n_vertices, -1)
    column_of[candidates.rows] = np.arange(len(candidates))
    for begin in range(0, len(asked), _ROWS):
        rows = asked[begin : begin + _ROWS]
        found, scores = queries.link_candidates(queries.rows[rows])
        columns = np.where(found >= 0, column_of[found], -1)
        scores[columns < 0] = -np.inf
        if exclude is not None:
            left_out = exclude[rows].tocoo()
            known = left_out.coords[0].astype(np.int64) * len(candidates) + left_out.coords[1]
            scores[np.isin(np.arange(len(rows))[:, None] * len(candidates) + columns, known)] = -np.inf
        yield rows, columns, scores
