"""What users get back: neighbours, scores, ranks and matches, under the ids of their points."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.scoring.evaluation import complete_parts
from corrvae.scoring.found import Found
from corrvae.scoring.metrics import Metric, Parts
from corrvae.scoring.named import NamedPoints


@final
@dataclass(frozen=True, eq=False)
class Neighbors:
    """The best candidates of each query, best first; ``scores, ids = neighbors`` takes it apart.

    Attributes
    ----------
    scores
        A row for each query, or a single row if one id was asked about; not a number where candidates ran out.
    ids
        The candidates, ``None`` where they ran out.
    parts
        What makes up the scores: `parts.mean`, `parts.variance` and `parts.correlation` sum to them.
    query_ids
        The queries; row numbers if they have no ids.
    metric
        The score's name.
    n_evaluated, n_pairs
        Pairs whose correlation was computed, and pairs in all; unordered ones where queries are the candidates.
    recall
        Of an approximate search, the share of true neighbours found, measured on a sample of the queries; ``None`` for
        an exact one.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> near = model.kneighbors(7, n_neighbors=3)
    >>> np.allclose(near.scores, near.parts.mean + near.parts.variance)  # no correlations in this model
    True
    """

    scores: Float[np.ndarray, "*queries neighbors"]
    ids: Shaped[np.ndarray, "*queries neighbors"]
    parts: Parts
    query_ids: Shaped[np.ndarray, "*queries"]
    metric: str
    n_evaluated: int
    n_pairs: int
    recall: float | None = None

    def first(self) -> "Neighbors":
        """Give the neighbours of the first query alone, as single rows."""
        parts = Parts(self.parts.mean[0], self.parts.variance[0], self.parts.correlation[0])
        rest = self.metric, self.n_evaluated, self.n_pairs, self.recall
        return Neighbors(self.scores[0], self.ids[0], parts, self.query_ids[:1].reshape(()), *rest)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.scores, self.ids))

    def __repr__(self) -> str:
        queries = "1 query" if self.query_ids.size == 1 else f"{self.query_ids.size:,} queries"
        recall = "" if self.recall is None else f", recall {self.recall:.3f}"
        return f"Neighbors({queries}, {self.scores.shape[-1]} each, {self.metric}{recall})"


@final
@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of given pairs; ``numpy.asarray`` gives the scores alone.

    Attributes
    ----------
    scores
        One for each pair.
    parts
        What makes them up.
    probabilities
        Calibrated probabilities of a link, if they were asked for.
    id_pairs
        The pairs.
    metric
        The score's name.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> scored = model.score_pairs([(0, 1), (2, 3)])
    >>> scored.scores.shape, scored.id_pairs.tolist()
    ((2,), [[0, 1], [2, 3]])
    """

    scores: Float[np.ndarray, " pairs"]
    parts: Parts
    probabilities: Float[np.ndarray, " pairs"] | None
    id_pairs: Shaped[np.ndarray, "pairs 2"]
    metric: str

    def __len__(self) -> int:
        return len(self.scores)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.scores, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"PairScores({_pairs(len(self))}, {self.metric})"


@final
@dataclass(frozen=True, eq=False)
class PairRanks:
    """Ranks of given (query, target) pairs; ``numpy.asarray`` gives the ranks alone.

    Attributes
    ----------
    ranks
        1 plus the number of other candidates whose score is at least as good as the target's.
    scores
        The targets' scores.
    parts
        What makes them up.
    id_pairs
        The pairs.
    metric
        The score's name.
    n_evaluated, n_pairs
        Pairs whose correlation was computed, and pairs in all: the bounds decided the rest.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> nearest = model.kneighbors(7, n_neighbors=1).ids[0]
    >>> ranks = model.rank_pairs([(7, nearest)])
    >>> ranks.ranks.tolist(), ranks.metric
    ([1], 'expected_distance')
    """

    ranks: Int[np.ndarray, " pairs"]
    scores: Float[np.ndarray, " pairs"]
    parts: Parts
    id_pairs: Shaped[np.ndarray, "pairs 2"]
    metric: str
    n_evaluated: int
    n_pairs: int

    def __len__(self) -> int:
        return len(self.ranks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.ranks, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"PairRanks({_pairs(len(self))}, {self.metric})"


@final
@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of a left and a right point.

    Attributes
    ----------
    id_pairs
        The left point's id and the right point's, in the order of the left points.
    scores
        Their scores.
    parts
        What makes them up.
    metric
        The score's name.
    one_to_one
        Whether no point is in two pairs.
    exact
        Whether the matching is the best of all; if not, it is the best among each point's nearest candidates.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> matches = model.match(range(3), range(10, 50))
    >>> matches, matches.id_pairs[:, 0].tolist(), matches.exact
    (Matches(3 pairs, expected_distance, one to one), [0, 1, 2], True)
    """

    id_pairs: Shaped[np.ndarray, "pairs 2"]
    scores: Float[np.ndarray, " pairs"]
    parts: Parts
    metric: str
    one_to_one: bool
    exact: bool

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return f"Matches({_pairs(len(self))}, {self.metric}{', one to one' if self.one_to_one else ''})"


def gather_neighbors(
    asked: NamedPoints, among: NamedPoints, metric: Metric, found: Found, recall: float | None = None
) -> Neighbors:
    """Put what a search found under ids, with the parts of the scores; no wider than the longest row.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> from corrvae.scoring.points import Points
    >>> named = NamedPoints(Points.of(np.array([[0.0], [2.0]]), np.ones((2, 1))), np.array([7, 8]), True)
    >>> found = Found(np.array([[4.0, np.nan]]), np.array([[1, -1]]), 0, 2)
    >>> gather_neighbors(named.take(np.array([0])), named, MeanDistance(), found).ids
    array([[8]])
    """
    there = found.positions >= 0
    width = int(there.sum(axis=1).max(initial=0))
    positions, scores, there = found.positions[:, :width], found.scores[:, :width], there[:, :width]
    pairs = np.stack([np.nonzero(there)[0], positions[there]], axis=1)
    parts = complete_parts(asked.points, among.points, metric, pairs, scores[there])
    whole = []
    for part in (parts.mean, parts.variance, parts.correlation):
        filled = np.full(scores.shape, np.nan)
        filled[there] = part
        whole.append(filled)
    counts = found.n_evaluated, found.n_pairs
    return Neighbors(scores, ids_at(among.ids, positions), Parts(*whole), asked.ids, metric.name, *counts, recall)


def ids_at(
    ids: Shaped[np.ndarray, " candidates"], positions: Int[np.ndarray, "*shape"]
) -> Shaped[np.ndarray, "*shape"]:
    """Give the ids at positions, and ``None`` at -1.

    Examples
    --------
    >>> ids_at(np.array([7, 8]), np.array([[1, 0], [1, -1]]))
    array([[8, 7],
           [8, None]], dtype=object)
    """
    if not (positions < 0).any():
        return ids[positions]
    found = np.full(positions.shape, None, dtype=object)
    there = positions >= 0
    found[there] = ids[positions[there]]
    return found


def pair_ids(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Put ids of two sides side by side, whatever their kinds.

    Examples
    --------
    >>> pair_ids(np.array([1]), np.array(["a"], dtype=object))
    array([[1, 'a']], dtype=object)
    """
    kind = np.int64 if left.dtype.kind == right.dtype.kind == "i" else object
    pairs = np.empty((len(left), 2), kind)
    pairs[:, 0], pairs[:, 1] = left, right
    return pairs


def _pairs(count: int) -> str:
    return "1 pair" if count == 1 else f"{count:,} pairs"
