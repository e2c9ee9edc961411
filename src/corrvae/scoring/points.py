"""Data points as scores see them: a posterior each, and what the pair network needs of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.scoring.pair_vectors import PairVectors


@final
@dataclass(frozen=True, eq=False)
class Points:
    """Normal posteriors of a set of points, in float32.

    Parameters
    ----------
    mean, stddev
        One row for each point.
    vectors
        What the pair network needs of each point; ``None`` for independent posteriors.

    Examples
    --------
    >>> points = Points.of(np.zeros((3, 2)), np.ones((3, 2)))
    >>> len(points), points.n_components
    (3, 2)
    """

    mean: Float[np.ndarray, "points dim"]
    stddev: Float[np.ndarray, "points dim"]
    vectors: PairVectors | None = None

    @classmethod
    def of(
        cls,
        mean: Float[np.ndarray, "points dim"],
        stddev: Float[np.ndarray, "points dim"],
        vectors: PairVectors | None = None,
    ) -> "Points":
        """Make points from any arrays of finite numbers."""
        if np.shape(mean) != np.shape(stddev):
            raise ValueError(f"mean has shape {np.shape(mean)}, but stddev has shape {np.shape(stddev)}")
        return cls(_finite(mean, "mean"), _finite(stddev, "standard deviation"), vectors)

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, indices: Int[np.ndarray, " chosen"]) -> "Points":
        """Give some of the points, in this order."""
        vectors = None if self.vectors is None else self.vectors.take(indices)
        return Points(self.mean[indices], self.stddev[indices], vectors)

    @property
    def n_components(self) -> int:
        """Number of latent dimensions."""
        return self.mean.shape[1]


@final
@dataclass(frozen=True, eq=False)
class Exclusions:
    """Candidates that each query leaves out, as the rows of a CSR pattern.

    Parameters
    ----------
    offsets
        Where each query's candidates begin in `candidates`, and the end.
    candidates
        Positions of candidates, ascending and distinct within a query.

    Examples
    --------
    >>> exclusions = Exclusions.of(3, np.array([2, 0, 2, 2]), np.array([1, 5, 0, 1]))
    >>> exclusions.offsets, exclusions.candidates
    (array([0, 1, 1, 3]), array([5, 0, 1]))
    """

    offsets: Int[np.ndarray, " boundaries"]
    candidates: Int[np.ndarray, " excluded"]

    @classmethod
    def of(
        cls, n_queries: int, queries: Int[np.ndarray, " excluded"], candidates: Int[np.ndarray, " excluded"]
    ) -> "Exclusions":
        """Collect (query, candidate) pairs in any order, repetitions allowed."""
        pairs = np.unique(np.stack([queries, candidates]).astype(np.int64), axis=1)
        offsets = np.zeros(n_queries + 1, np.int64)
        np.cumsum(np.bincount(pairs[0], minlength=n_queries), out=offsets[1:])
        return cls(offsets, pairs[1])

    @classmethod
    def none(cls, n_queries: int) -> "Exclusions":
        """Exclude nothing.

        Examples
        --------
        >>> Exclusions.none(2).counts
        array([0, 0])
        """
        return cls(np.zeros(n_queries + 1, np.int64), np.empty(0, np.int64))

    @classmethod
    def union(cls, n_queries: int, parts: "Iterable[Exclusions]") -> "Exclusions":
        """Exclude what any of the parts excludes."""
        parts = list(parts)
        nothing = np.empty(0, np.int64)
        queries = np.concatenate([nothing, *(part.queries for part in parts)])
        return cls.of(n_queries, queries, np.concatenate([nothing, *(part.candidates for part in parts)]))

    def take(self, queries: Int[np.ndarray, " chosen"]) -> "Exclusions":
        """Give the exclusions of some queries, in their order.

        Examples
        --------
        >>> Exclusions.of(3, np.array([0, 2, 2]), np.array([5, 1, 7])).take(np.array([2, 1])).candidates
        array([1, 7])
        """
        counts = self.counts[queries]
        offsets = np.zeros(len(queries) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return Exclusions(offsets, self.candidates[np.repeat(self.offsets[queries], counts) + within])

    @property
    def queries(self) -> Int[np.ndarray, " excluded"]:
        """The query of each excluded candidate."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def counts(self) -> Int[np.ndarray, " queries"]:
        """How many candidates each query leaves out."""
        return np.diff(self.offsets)


def _finite(values: Float[np.ndarray, "points dim"], name: str) -> Float[np.ndarray, "points dim"]:
    """Give numbers in float32; a search could not order what is not finite."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(values, np.float32)
    # A sum shows in one pass, without a mask of all entries, whether there is anything to look for.
    if not np.isfinite(rounded.sum(dtype=np.float64)):
        point, dimension = np.argwhere(~np.isfinite(rounded))[0].tolist()
        raise ValueError(
            f"the {name} of point {point} is {rounded[point, dimension]} in dimension {dimension}: it must be finite; "
            "features far outside the range of training can cause this"
        )
    return rounded
