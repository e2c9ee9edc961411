"""Scores between two points, each a small object: for given pairs, and for all against all."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from corrvae.scoring.blocks import Blocks, LogOddsBlocks, ProductBlocks
from corrvae.scoring.kernels import exact
from corrvae.scoring.points import Points


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """What makes up scores; the parts sum to them.

    Attributes
    ----------
    mean
        The part of the points' means.
    variance
        The part of their standard deviations alone.
    correlation
        The part of the pair's correlation.

    Examples
    --------
    >>> Parts(mean=np.array([1.0]), variance=np.array([0.5]), correlation=np.array([-0.2])).score
    array([1.3])
    """

    mean: Float[np.ndarray, "*shape"]
    variance: Float[np.ndarray, "*shape"]
    correlation: Float[np.ndarray, "*shape"]

    @property
    def score(self) -> Float[np.ndarray, "*shape"]:
        """The sum of the parts."""
        return self.mean + self.variance + self.correlation


class Metric(ABC):
    """A score of two points.

    Attributes
    ----------
    name
        As users call it.
    larger_is_better
        Whether linked points have large scores, or small ones.
    uses_correlation
        Whether the correlation of a pair enters, where there is one.
    """

    name: ClassVar[str]
    larger_is_better: ClassVar[bool]
    uses_correlation: ClassVar[bool] = False
    _kind: ClassVar[int]
    _tau: Float[np.ndarray, " dim"] = np.empty(0)

    @abstractmethod
    def blocks(self, queries: Points, candidates: Points) -> Blocks:
        """Give the costs of all pairs, correlations left out, for a search."""

    @abstractmethod
    def proxies(self, queries: Points, candidates: Points) -> tuple[np.ndarray, np.ndarray]:
        """Give vectors of queries and of candidates whose Euclidean distance orders them much as the metric does."""

    @property
    def sign(self) -> float:
        """What a score is multiplied with to be a cost, of which lower is better."""
        return -1.0 if self.larger_is_better else 1.0

    @property
    def for_kernels(self) -> tuple[int, float, Float[np.ndarray, " dim"]]:
        """Kind, sign and tau, as kernels take them."""
        return self._kind, self.sign, self._tau

    def parts(
        self,
        queries: Points,
        candidates: Points,
        pairs: Int[np.ndarray, "pairs 2"],
        correlation: Float[np.ndarray, "pairs dim"] | None = None,
    ) -> Parts:
        """Give the parts of the scores of pairs (position of a query, position of a candidate), in float64.

        Parameters
        ----------
        queries, candidates
            The points.
        pairs
            Positions.
        correlation
            The correlation of each pair in each dimension, for a metric that uses it.
        """
        self._check_dimensions(queries, candidates)
        of_means, of_variances = np.empty((2, len(pairs)))
        sides = side(queries), side(candidates)
        exact.fill_parts(self._kind, *sides, self._tau, pairs.astype(np.int64), of_means, of_variances)
        of_correlations = np.zeros(len(pairs))
        if correlation is not None and self.uses_correlation:
            products = queries.stddev[pairs[:, 0]].astype(np.float64) * candidates.stddev[pairs[:, 1]]
            of_correlations = -2.0 * (correlation * products).sum(axis=1)
        return Parts(of_means, of_variances, of_correlations)

    def _check_dimensions(self, queries: Points, candidates: Points) -> None:
        """Refuse points that do not go together, which kernels would read past their ends."""
        if queries.n_components != candidates.n_components:
            raise ValueError(
                f"queries have {queries.n_components} dimensions, but candidates have {candidates.n_components}"
            )


def side(points: Points) -> exact.Side:
    """Give points as kernels take them.

    Examples
    --------
    >>> side(Points.of(np.zeros((1, 2)), np.full((1, 2), 0.5))).variance
    array([0.5])
    """
    return exact.Side(points.mean, points.stddev, np.square(points.stddev, dtype=np.float64).sum(axis=1))


@final
class ExpectedDistance(Metric):
    """Expected squared distance of the two latent points: ||m_i - m_j||^2 + sum(s_i^2 + s_j^2 - 2 rho s_i s_j).

    Examples
    --------
    >>> points = Points.of(np.array([[0.0], [3.0]]), np.array([[1.0], [2.0]]))
    >>> ExpectedDistance().parts(points, points, np.array([[0, 1]]), np.array([[0.5]]))
    Parts(mean=array([9.]), variance=array([5.]), correlation=array([-2.]))
    """

    name = "expected_distance"
    larger_is_better = False
    uses_correlation = True
    _kind = exact.EXPECTED_DISTANCE

    def blocks(self, queries: Points, candidates: Points) -> Blocks:
        """Give the costs of all pairs, as inner products in two more dimensions."""
        return _distance_blocks(queries, candidates, side(queries).variance, side(candidates).variance)

    def proxies(self, queries: Points, candidates: Points) -> tuple[np.ndarray, np.ndarray]:
        """Give means with one more entry: 0 for queries, the root of the total variance for candidates."""
        spread = np.sqrt(side(candidates).variance).astype(np.float32)
        still = np.zeros(len(queries), np.float32)
        return np.column_stack([queries.mean, still]), np.column_stack([candidates.mean, spread])


@final
class MeanDistance(Metric):
    """Squared Euclidean distance of the means.

    Examples
    --------
    >>> points = Points.of(np.array([[0.0], [3.0]]), np.ones((2, 1)))
    >>> MeanDistance().parts(points, points, np.array([[0, 1]])).score
    array([9.])
    """

    name = "mean_distance"
    larger_is_better = False
    _kind = exact.MEAN_DISTANCE

    def blocks(self, queries: Points, candidates: Points) -> Blocks:
        """Give the costs of all pairs, as inner products in two more dimensions."""
        return _distance_blocks(queries, candidates, np.zeros(len(queries)), np.zeros(len(candidates)))

    def proxies(self, queries: Points, candidates: Points) -> tuple[np.ndarray, np.ndarray]:
        """Give the means."""
        return queries.mean, candidates.mean


@final
class Cosine(Metric):
    """Cosine of the means; 0 if a mean is 0.

    Examples
    --------
    >>> points = Points.of(np.array([[3.0, 4.0], [1.0, 0.0]]), np.ones((2, 2)))
    >>> Cosine().parts(points, points, np.array([[0, 1]])).score
    array([0.6])
    """

    name = "cosine"
    larger_is_better = True
    _kind = exact.COSINE

    def blocks(self, queries: Points, candidates: Points) -> Blocks:
        """Give minus the cosines of all pairs, as inner products of rows of length 1."""
        ones, zeros = np.ones(len(queries)), np.zeros(len(candidates))
        return ProductBlocks(-_directions(queries), _directions(candidates), ones, zeros)

    def proxies(self, queries: Points, candidates: Points) -> tuple[np.ndarray, np.ndarray]:
        """Give the means, scaled to length 1."""
        return _directions(queries), _directions(candidates)


@final
class LogOdds(Metric):
    """Log of the Bayes factor of 'linked' against 'unrelated', by the points' own posteriors.

    In each dimension, with u = 1 - s^2 (s at most 1) and D = 1 - tau^2 u_i u_j, it is
    -(log D + (tau^2 (u_j m_i^2 + u_i m_j^2) - 2 tau m_i m_j) / D) / 2.

    Parameters
    ----------
    tau
        Correlation of linked points in each dimension.

    Examples
    --------
    >>> points = Points.of(np.array([[1.0], [1.0], [-1.0]]), np.full((3, 1), 0.1))
    >>> LogOdds(np.array([0.9])).parts(points, points, np.array([[0, 1], [0, 2]])).score.round(2)
    array([ 1.27, -7.47])
    """

    name = "log_odds"
    larger_is_better = True
    _kind = exact.LOG_ODDS

    def __init__(self, tau: Float[np.ndarray, " dim"]) -> None:
        if np.ndim(tau) != 1:
            raise ValueError(f"tau must have one entry for each latent dimension, got shape {np.shape(tau)}")
        if not (np.abs(tau) < 1).all():
            raise ValueError(f"tau must lie strictly between -1 and 1, got {tau}")
        self._tau = np.ascontiguousarray(tau, np.float64)

    def blocks(self, queries: Points, candidates: Points) -> Blocks:
        """Give minus the log-odds of all pairs."""
        self._check_dimensions(queries, candidates)
        return LogOddsBlocks(queries, candidates, self._tau)

    def proxies(self, queries: Points, candidates: Points) -> tuple[np.ndarray, np.ndarray]:
        """Give scaled means: with every u at its mean over candidates, the score is a distance from m_i / (tau u)."""
        self._check_dimensions(queries, candidates)
        u = np.maximum(1.0 - np.minimum(np.square(candidates.stddev), 1.0).mean(axis=0), 1e-3)
        tau = np.where(np.abs(self._tau) < 1e-3, 1e-3, self._tau)
        scale = np.abs(tau) * np.sqrt(u / (1.0 - (tau * u) ** 2))
        return (scale / (tau * u) * queries.mean).astype(np.float32), (scale * candidates.mean).astype(np.float32)

    def _check_dimensions(self, queries: Points, candidates: Points) -> None:
        super()._check_dimensions(queries, candidates)
        if len(self._tau) != queries.n_components:
            raise ValueError(f"tau has {len(self._tau)} entries, but the points have {queries.n_components} dimensions")


def make_metric(metric: str | Metric, tau: Float[np.ndarray, " dim"]) -> Metric:
    """Give the metric of a name.

    Parameters
    ----------
    metric
        "expected_distance", "log_odds", "mean_distance", "cosine", or a metric.
    tau
        The prior's correlation in each dimension, which log-odds need.

    Examples
    --------
    >>> make_metric("cosine", np.full(2, 0.99)).larger_is_better
    True
    """
    if isinstance(metric, Metric):
        return metric
    if metric == LogOdds.name:
        return LogOdds(tau)
    for kind in (ExpectedDistance, MeanDistance, Cosine):
        if metric == kind.name:
            return kind()
    raise ValueError(f'metric must be "expected_distance", "log_odds", "mean_distance" or "cosine", not {metric!r}')


def _distance_blocks(
    queries: Points, candidates: Points, spread_i: Float[np.ndarray, " queries"], spread_j: np.ndarray
) -> Blocks:
    """[-2 m_i, a_i, 1] . [m_j, 1, a_j] with a = ||m||^2 + spread."""
    squares_i, squares_j = (np.square(part.mean, dtype=np.float64).sum(axis=1) for part in (queries, candidates))
    a_i, a_j = squares_i + spread_i, squares_j + spread_j
    left, right = (np.empty((len(part), part.n_components + 2), np.float32) for part in (queries, candidates))
    with np.errstate(over="ignore"):  # what is too large for float32 is left open, and decided in float64
        np.multiply(queries.mean, -2.0, out=left[:, :-2])
        left[:, -2], left[:, -1] = a_i, 1.0
        right[:, :-2] = candidates.mean
        right[:, -2], right[:, -1] = 1.0, a_j
    return ProductBlocks(left, right, 2.0 * a_i, 2.0 * a_j)


def _directions(points: Points) -> Float[np.ndarray, "points dim"]:
    lengths = np.sqrt(np.square(points.mean, dtype=np.float64).sum(axis=1, keepdims=True))
    return (points.mean / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)
