"""What users receive: neighbours, scores and ranks, under the ids of their points."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, Shaped

from corrvae.io import ids_as_column
from corrvae.model.posterior import Posterior
from corrvae.scoring.metrics import MetricLike, make_metric
from corrvae.scoring.search import Parts, parts


@dataclass(frozen=True, eq=False)
class _PerQuery:
    """What `Neighbors` and `RankedFeatures` have in common: a row for each query, best first."""

    scores: Float[np.ndarray, "*queries k"]
    ids: Shaped[np.ndarray, "*queries k"]
    query_ids: Shaped[np.ndarray, "*queries"]

    def first(self) -> Any:
        """Return what was found for the first query alone, as single rows."""
        rows = {name: values[0] for name, values in vars(self).items() if isinstance(values, np.ndarray | Parts)}
        return replace(self, **{**rows, "query_ids": self.query_ids[:1].reshape(())})

    def _columns(self, name: str, there: np.ndarray) -> dict[str, np.ndarray]:
        """Return query, rank and what was found, called `name`, as columns of a table."""
        rows, columns = np.nonzero(there)
        ids = np.atleast_2d(self.ids)[there]
        return {"query": np.atleast_1d(self.query_ids)[rows], "rank": columns + 1, name: ids}

    def __repr__(self) -> str:
        queries = "1 query" if self.query_ids.size == 1 else f"{self.query_ids.size:,} queries"
        return f"{type(self).__name__}({queries}, {self.scores.shape[-1]} each)"


def _under_ids(
    ids: Shaped[np.ndarray, " candidates"],
    positions: Int[np.ndarray, "queries k"],
    scores: Float[np.ndarray, "queries k"],
) -> tuple[Shaped[np.ndarray, "queries width"], Float[np.ndarray, "queries width"]]:
    """Return positions under ids, with their scores: no wider than the longest row, ``None`` where a row is shorter."""
    width = int((positions >= 0).sum(axis=1).max(initial=0))
    positions, scores = positions[:, :width], scores[:, :width]
    found = ids[positions] if len(ids) else np.empty(positions.shape, object)
    if (positions < 0).any():
        found = found.astype(object)
        found[positions < 0] = None
    return found, scores


@final
@dataclass(frozen=True, eq=False, repr=False)
class Neighbors(_PerQuery):
    """The best candidates of each query, best first; ``scores, ids = neighbors`` unpacks it.

    Attributes
    ----------
    scores
        A row for each query; not a number where candidates ran out.
    ids
        The candidates; ``None`` where they ran out.
    query_ids
        The queries.
    parts
        What makes up the scores: `parts.mean`, `parts.variance` and `parts.correlation` sum to them. ``None`` for a
        metric of the user's own.
    metric, larger_is_better
        The score's name and direction.
    """

    parts: Parts | None
    metric: str
    larger_is_better: bool

    @classmethod
    def of(
        cls,
        queries: Posterior,
        candidates: Posterior,
        metric: MetricLike,
        positions: Int[np.ndarray, "queries k"],
        scores: Float[np.ndarray, "queries k"],
    ) -> "Neighbors":
        """Return what `corrvae.scoring.nearest` found under ids; no wider than the longest row."""
        metric = make_metric(metric)
        ids, scores = _under_ids(candidates.ids, positions, scores)
        rows, columns = np.nonzero(positions[:, : scores.shape[1]] >= 0)
        pairs = np.stack([rows, positions[rows, columns]], axis=1)
        found = parts(queries, candidates, metric, pairs, scores[rows, columns])
        if found is not None:
            whole = np.full((3, *scores.shape), np.nan)
            whole[:, rows, columns] = found.mean, found.variance, found.correlation
            found = Parts(whole[0], whole[1], whole[2])
        return cls(scores, ids, queries.ids, found, metric.name, metric.larger_is_better)

    def to_table(self) -> pa.Table:
        """Return a row for each query and neighbour."""
        there = np.atleast_2d(~np.isnan(self.scores))
        return score_table(self._columns("neighbor", there), self, there.reshape(self.scores.shape))

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.scores, self.ids))

    def __repr__(self) -> str:
        return super().__repr__().removesuffix(")") + f", {self.metric})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class RankedFeatures(_PerQuery):
    """The best features of each query, best first; ``ids, scores = ranked`` unpacks it.

    A row for each query, a point or a feature; where there are no more, an id is ``None`` and a score not a number.
    """

    @classmethod
    def of(
        cls,
        query_ids: Shaped[np.ndarray, " queries"],
        names: Shaped[np.ndarray, " features"],
        positions: Int[np.ndarray, "queries k"],
        scores: Float[np.ndarray, "queries k"],
    ) -> "RankedFeatures":
        """Return positions under names; no wider than the longest row."""
        ids, scores = _under_ids(names, positions, scores)
        return cls(scores, ids, query_ids)

    def to_table(self) -> pa.Table:
        """Return a row for each query and feature."""
        there = np.atleast_2d(~np.isnan(self.scores))
        columns = {**self._columns("feature", there), "score": np.atleast_2d(self.scores)[there]}
        return pa.table({name: ids_as_column(part) for name, part in columns.items()})

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.ids, self.scores))


@dataclass(frozen=True, eq=False)
class OfPairs:
    """What `PairScores`, `PairRanks` and `Matches` have in common."""

    id_pairs: Shaped[np.ndarray, "pairs 2"]
    scores: Float[np.ndarray, " pairs"]
    parts: Parts | None
    metric: str
    larger_is_better: bool

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        count = "1 pair" if len(self) == 1 else f"{len(self):,} pairs"
        return f"{type(self).__name__}({count}, {self.metric})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class PairScores(OfPairs):
    """Scores of given pairs; ``numpy.asarray`` returns the scores alone.

    `probabilities` are calibrated ones of a link, if they were asked for.
    """

    probabilities: Float[np.ndarray, " pairs"] | None = None

    def to_table(self) -> pa.Table:
        """Return a row for each pair, in the order they were asked about."""
        ids = {"source": self.id_pairs[:, 0], "target": self.id_pairs[:, 1]}
        return score_table(ids if self.probabilities is None else {**ids, "probability": self.probabilities}, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.scores, dtype=dtype, copy=copy)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PairRanks(OfPairs):
    """Ranks of given (query, target) pairs; ``numpy.asarray`` returns the ranks alone.

    A rank is 1 plus the number of other candidates whose score is at least as good as the target's.
    """

    ranks: Int[np.ndarray, " pairs"]

    def to_table(self) -> pa.Table:
        """Return a row for each pair, in the order they were asked about."""
        return score_table({"source": self.id_pairs[:, 0], "target": self.id_pairs[:, 1], "rank": self.ranks}, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.ranks, dtype=dtype, copy=copy)


def score_table(
    columns: dict[str, np.ndarray], result: Neighbors | OfPairs, there: np.ndarray | slice = slice(None)
) -> pa.Table:
    """Return columns, then score, its parts, its name and its direction, of the scores that are `there`."""
    values = {**columns, "score": result.scores[there]}
    if result.parts is not None:
        values |= {f"{name}_part": part for name, part in vars(result.parts[there]).items()}
    n_rows = len(values["score"])
    direction = "higher" if result.larger_is_better else "lower"
    arrays = {name: ids_as_column(part) if part.dtype == object else pa.array(part) for name, part in values.items()}
    return pa.table({**arrays, "metric": pa.repeat(result.metric, n_rows), "better": pa.repeat(direction, n_rows)})


@final
@dataclass(frozen=True, eq=False)
class EdgeSupport:
    """What the data say of the edges of a graph, the least supported first.

    Attributes
    ----------
    id_pairs
        The edges.
    weights
        The probability that a forest of the prior contains each edge.
    conductances
        With which forests are drawn.
    edge_terms
        T_e: what the edge costs the bound, in nats. Below 0 the points are alike, above 0 they are not.
    """

    id_pairs: Shaped[np.ndarray, "edges 2"]
    weights: Float[np.ndarray, " edges"]
    conductances: Float[np.ndarray, " edges"]
    edge_terms: Float[np.ndarray, " edges"]

    def to_table(self) -> pa.Table:
        """Return a row for each edge."""
        source, target = map(ids_as_column, self.id_pairs.T)
        numbers = {"weight": self.weights, "conductance": self.conductances, "edge_term": self.edge_terms}
        return pa.table({"source": source, "target": target, **numbers})

    def __repr__(self) -> str:
        return f"EdgeSupport({len(self.id_pairs):,} edges)"
