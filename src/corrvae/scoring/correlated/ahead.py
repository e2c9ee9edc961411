"""Candidates that are tried before all others, because their lower bounds are least."""

from collections.abc import Iterator
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.scoring.correlated.bounds import lower_bounds
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.points import Points

# Columns whose bounds are formed at a time, and bytes that each takes: bounds, a copy, and their places.
_MOST_COLUMNS, _FEWEST_COLUMNS, _BYTES = 4096, 64, 24


@final
class BoundSearch:
    """Lower bounds of groups of queries against all groups of candidates, some columns at a time.

    Parameters
    ----------
    queries, candidates
        The points.
    left, right
        Their groups.
    n_rows
        Most groups of queries that are asked for at a time.
    memory
        Bytes that one call may take.
    """

    def __init__(
        self, queries: Points, candidates: Points, left: Distinct, right: Distinct, *, n_rows: int, memory: int
    ) -> None:
        self._queries, self._candidates = queries, candidates
        self._left, self._right = left, right
        each = _BYTES * n_rows + 32 * candidates.n_components
        self._n_columns = int(np.clip(memory // each, _FEWEST_COLUMNS, _MOST_COLUMNS))

    def least(self, groups: Int[np.ndarray, " rows"], count: int) -> Int[np.ndarray, "rows count"]:
        """Give the groups of candidates with the least lower bounds for each of these groups of queries."""
        values, places = np.empty((len(groups), 0), np.float32), np.empty((len(groups), 0), np.int32)
        for columns, lower in self._blocks(groups):
            numbers = np.broadcast_to(np.arange(columns.start, columns.stop, dtype=np.int32), lower.shape)
            values, places = np.concatenate([values, lower], axis=1), np.concatenate([places, numbers], axis=1)
            if values.shape[1] > count:
                chosen = np.argpartition(values, count - 1, axis=1)[:, :count]
                values, places = (np.take_along_axis(part, chosen, axis=1) for part in (values, places))
        return places

    def share_beyond(self, groups: Int[np.ndarray, " rows"], reach: Float[np.ndarray, " rows"]) -> float:
        """Give the share of these pairs whose lower bound is beyond the query's reach."""
        n_beyond = sum(int((lower > reach[:, None]).sum()) for _, lower in self._blocks(groups))
        return n_beyond / (len(groups) * len(self._right))

    def _blocks(self, groups: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        rows = self._left.representatives[groups]
        mean, stddev = self._queries.mean[rows], self._queries.stddev[rows]
        for begin in range(0, len(self._right), self._n_columns):
            columns = slice(begin, min(begin + self._n_columns, len(self._right)))
            points = self._right.representatives[columns]
            yield columns, lower_bounds(mean, stddev, self._candidates.mean[points], self._candidates.stddev[points])
