"""Answers as tables: columns under names, and what holds for all of their rows.

Every table of scores has the same columns at its end: `score`; `mean_part`, `variance_part` and `correlation_part`,
which sum to it; `metric`, its name; and `better`, "lower" or "higher".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from jaxtyping import Shaped

from corrvae.scoring.metrics import Cosine, LogOdds, Parts
from corrvae.scoring.results import Neighbors, PairScores

_LARGER = (Cosine.name, LogOdds.name)


@final
@dataclass(frozen=True, eq=False)
class AnswerTable:
    """Columns of equal length.

    Attributes
    ----------
    columns
        By name: numbers, ids or words.
    facts
        What holds for the whole table, such as the metric; these are columns of a file too if they are in `repeated`.
    repeated
        Names of facts that a file repeats in every row.

    Examples
    --------
    >>> AnswerTable({"id": np.array(["ann", "bob"], object), "cluster": np.array([0, 1])})
    AnswerTable(2 rows: id, cluster)
    """

    columns: Mapping[str, Shaped[np.ndarray, " rows"]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __repr__(self) -> str:
        return f"AnswerTable({len(self):,} rows: {', '.join([*self.columns, *self.repeated])})"


def better(metric: str) -> str:
    """Say which scores are better.

    Examples
    --------
    >>> better("expected_distance"), better("log_odds")
    ('lower', 'higher')
    """
    return "higher" if metric in _LARGER else "lower"


def score_table(
    ids: Mapping[str, Shaped[np.ndarray, " rows"]],
    scores: Shaped[np.ndarray, " rows"],
    parts: Parts,
    metric: str,
    facts: Mapping[str, Any] | None = None,
) -> AnswerTable:
    """Put scores and their parts beside the ids they are of.

    Parameters
    ----------
    ids
        The first columns.
    scores, parts, metric
        As in `corrvae.scoring.results`.
    facts
        Further facts of the table.

    Examples
    --------
    >>> parts = Parts(np.array([4.0]), np.array([2.0]), np.array([-1.0]))
    >>> score_table({"source": np.array([7]), "target": np.array([8])}, parts.score, parts, "expected_distance")
    AnswerTable(1 rows: source, target, score, mean_part, variance_part, correlation_part, metric, better)
    """
    values = {"mean_part": parts.mean, "variance_part": parts.variance, "correlation_part": parts.correlation}
    direction = {"metric": metric, "better": better(metric)}
    return AnswerTable({**ids, "score": scores, **values}, {**direction, **(facts or {})}, tuple(direction))


def neighbors_table(found: Neighbors) -> AnswerTable:
    """Give a row for each query and neighbour, the queries in their order and the neighbours best first.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> len(neighbors_table(model.kneighbors(n_neighbors=3)))
    150
    """
    there = ~np.isnan(found.scores)
    rows, columns = np.nonzero(there)
    parts = Parts(found.parts.mean[there], found.parts.variance[there], found.parts.correlation[there])
    named = {"query": found.query_ids[rows], "rank": columns + 1, "neighbor": _column(found.ids[there])}
    return score_table(named, found.scores[there], parts, found.metric)


def pairs_table(scored: PairScores) -> AnswerTable:
    """Give a row for each pair, in the order they were asked about.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> len(pairs_table(model.score_pairs([(0, 1), (0, 2)])))
    2
    """
    ids = {"source": scored.id_pairs[:, 0], "target": scored.id_pairs[:, 1]}
    return score_table(ids, scored.scores, scored.parts, scored.metric)


def _column(ids: np.ndarray) -> np.ndarray:
    """Integers as integers again, after they stood beside ids of another kind."""
    return ids.astype(np.int64) if len(ids) and all(type(value) is int for value in ids.tolist()) else ids
