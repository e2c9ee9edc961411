"""Scores between points. A metric is one function of two blocks of points, and one line of the registry `METRICS`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.model.posterior import Posterior


@final
@dataclass(frozen=True, eq=False)
class Points:
    """A block of points, as metrics read them.

    Posteriors are in float32, tau is in float64; `vectors` are what correlations with other points are computed from,
    ``None`` if the metric does not use them.
    """

    mean: Float[Tensor, "points dim"]
    stddev: Float[Tensor, "points dim"]
    tau: Float[Tensor, " dim"]
    posterior: Posterior
    vectors: Float[Tensor, "points width"] | None = None

    @classmethod
    def of(
        cls, posterior: Posterior, positions: Int[np.ndarray, " points"], *, correlated: bool, device: torch.device
    ) -> "Points":
        """Return the points at some positions, with vectors if `correlated`."""
        mean, stddev = (
            torch.from_numpy(np.asarray(part[positions], np.float32)).to(device)
            for part in (posterior.mean, posterior.stddev)
        )
        # Apple's GPUs have no float64.
        tau = torch.from_numpy(np.array(posterior.tau, np.float32 if device.type == "mps" else np.float64)).to(device)
        return cls(mean, stddev, tau, posterior, posterior.vectors(positions) if correlated else None)

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, rows: slice) -> "Points":
        vectors = None if self.vectors is None else self.vectors[rows]
        return Points(self.mean[rows], self.stddev[rows], self.tau, self.posterior, vectors)

    def pre_activation(self, other: "Points") -> Float[Tensor, "points others dim"] | None:
        """Return a with correlation tanh(a), of every point with every other; ``None`` for independent posteriors."""
        if not (self.posterior.searchable.is_correlated and other.posterior.searchable.is_correlated):
            return None
        if self.vectors is None or other.vectors is None:
            raise ValueError(
                "this metric reads correlations without saying so; pass Metric(name, function, larger_is_better=..., "
                "uses_correlation=True) in place of the function"
            )
        return self.posterior.block(self.vectors, other.vectors)


BlockFunction = Callable[[Points, Points], Tensor]
# Means and standard deviations of two points of each pair, and tau -> the parts of means and of standard deviations.
PartsFunction = Callable[
    [np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | float]
]


@final
@dataclass(frozen=True)
class Metric:
    """A score of two points.

    Attributes
    ----------
    name
        As users call it.
    function
        Takes two blocks of `Points`, queries and candidates; returns a score for each query (row) and candidate
        (column).
    larger_is_better
        Whether linked points have large scores.
    uses_correlation
        Whether the function calls `Points.pre_activation`.
    is_product
        Whether the function is a matrix product for uncorrelated points. It is then called with large blocks; other
        functions with blocks so small that a few arrays of queries x candidates x dimensions fit into the cache.
    is_symmetric
        Whether exchanging the two points changes nothing. A pair is then evaluated once for both.
    parts
        The same score for listed pairs, in float64: the parts of means and of standard deviations, which sum to the
        score without correlations. Without it results have no parts.

    Examples
    --------
    >>> def manhattan(queries, candidates):
    ...     return torch.cdist(queries.mean, candidates.mean, p=1)
    >>> Metric("manhattan", manhattan, larger_is_better=False).name
    'manhattan'
    """

    name: str
    function: BlockFunction
    larger_is_better: bool
    uses_correlation: bool = False
    is_product: bool = False
    is_symmetric: bool = False
    parts: PartsFunction | None = None

    @property
    def sign(self) -> float:
        """What a score is multiplied with to be a cost, of which lower is better."""
        return -1.0 if self.larger_is_better else 1.0


MetricLike = str | Metric | BlockFunction


def make_metric(metric: MetricLike) -> Metric:
    """Return the metric of a name, or of a function of two blocks of points whose larger values are better."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)} or a function, got {metric!r}")
        return METRICS[metric]
    if not callable(metric):
        raise TypeError(f"metric must be a name, a Metric or a function of two blocks of points, got {metric!r}")
    return Metric(getattr(metric, "__name__", type(metric).__name__), metric, larger_is_better=True)


def expected_distance(queries: Points, candidates: Points) -> Float[Tensor, "queries candidates"]:
    """Compute the expected squared distance ||m_i - m_j||^2 + sum(s_i^2 + s_j^2 - 2 rho s_i s_j).

    Without correlations it is an inner product in d + 1 dimensions and a constant of the query. With them it is summed
    as (m_i - m_j)^2 + (s_i - s_j)^2 + 2 (1 - rho) s_i s_j with 1 - rho = 2 sigmoid(-2a): no term is negative, so
    nothing cancels.
    """
    a = queries.pre_activation(candidates)
    if a is None:
        spread_i, spread_j = (points.stddev.square().sum(1) for points in (queries, candidates))
        return _squared_distances(queries, candidates, spread_i, spread_j)
    left, right = (torch.cat([points.mean, points.stddev], dim=1) for points in (queries, candidates))
    rest = torch.sigmoid(-2.0 * a).mul_(candidates.stddev).mul_(queries.stddev[:, None])
    return (left[:, None] - right).square_().sum(2).add_(rest.sum(2), alpha=4.0)


def mean_distance(queries: Points, candidates: Points) -> Float[Tensor, "queries candidates"]:
    """Compute the squared Euclidean distance of the means."""
    nothing_i, nothing_j = (points.mean.new_zeros(len(points)) for points in (queries, candidates))
    return _squared_distances(queries, candidates, nothing_i, nothing_j)


def cosine(queries: Points, candidates: Points) -> Float[Tensor, "queries candidates"]:
    """Compute the cosine of the means; 0 if a mean is 0."""
    left, right = (_directions(points.mean) for points in (queries, candidates))
    return left @ right.T


def inner_product(queries: Points, candidates: Points) -> Float[Tensor, "queries candidates"]:
    """Compute the inner product of the means."""
    return queries.mean @ candidates.mean.T


def log_odds(queries: Points, candidates: Points) -> Float[Tensor, "queries candidates"]:
    """Compute the log of the Bayes factor of 'linked' against 'unrelated', by the points' own posteriors.

    In each dimension, with u = 1 - s^2 (s at most 1) and D = 1 - tau^2 u_i u_j, it is
    -(log D + (tau^2 (u_j m_i^2 + u_i m_j^2) - 2 tau m_i m_j) / D) / 2. Near tau = 1 these differences lose digits. With
    v = s^2, g = 1 - tau + tau v and x = sqrt(tau) m the same numbers are D = 1 - tau^2 + tau^2 (v_i + u_i v_j) and
    (x_i - x_j)^2 - x_i^2 g_j - x_j^2 g_i. A negative tau turns the sign of one mean.
    """
    size = queries.tau.abs()
    x, y = queries.mean * size.sqrt().float(), candidates.mean * (size.sqrt() * queries.tau.sign()).float()
    v, w = (points.stddev.square().clamp(max=1.0) for points in (queries, candidates))
    g, h = ((1.0 - size).float() + size.float() * part for part in (v, w))
    square = (size**2).float()
    D = torch.addcmul((((1.0 - size) * (1.0 + size)).float() + square * v)[:, None], (square * (1.0 - v))[:, None], w)
    terms = (x[:, None] - y).square_()
    terms.addcmul_(x.square()[:, None], h, value=-1.0).addcmul_(g[:, None], y.square(), value=-1.0).div_(D)
    # A logarithm costs as much as all the rest: take it of products of four.
    for _ in range(2):
        half = D.shape[2] // 2
        D[..., :half] *= D[..., D.shape[2] - half :]
        D = D[..., : D.shape[2] - half]
    return terms.sum(2).add_(D.log_().sum(2)).mul_(-0.5)


def _squared_distances(queries: Points, candidates: Points, spread_i: Tensor, spread_j: Tensor) -> Tensor:
    size_i, size_j = queries.mean.square().sum(1) + spread_i, candidates.mean.square().sum(1) + spread_j
    return torch.addmm(size_j, queries.mean, candidates.mean.T, alpha=-2.0).add_(size_i[:, None])


def _directions(mean: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(mean, dim=1, keepdim=True)
    return mean / torch.where(lengths == 0.0, 1.0, lengths)


def _expected_distance_parts(m, s, n, t, tau):
    return np.square(m - n).sum(1), (s**2 + t**2).sum(1)


def _mean_distance_parts(m, s, n, t, tau):
    return np.square(m - n).sum(1), 0.0


def _cosine_parts(m, s, n, t, tau):
    lengths = np.linalg.norm(m, axis=1) * np.linalg.norm(n, axis=1)
    return (m * n).sum(1) / np.where(lengths == 0.0, 1.0, lengths), 0.0


def _inner_product_parts(m, s, n, t, tau):
    return (m * n).sum(1), 0.0


def _log_odds_parts(m, s, n, t, tau):
    v, w = np.minimum(s, 1.0) ** 2, np.minimum(t, 1.0) ** 2
    D = (1.0 - tau) * (1.0 + tau) + tau**2 * (v + (1.0 - v) * w)
    numerator = tau**2 * ((1.0 - w) * m**2 + (1.0 - v) * n**2) - 2.0 * tau * m * n
    return -0.5 * (numerator / D).sum(1), -0.5 * np.log(D).sum(1)


def _built_in(function: BlockFunction, parts: PartsFunction, **options: bool) -> Metric:
    return Metric(function.__name__, function, is_symmetric=True, parts=parts, **options)  # pyright: ignore


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _built_in(
            expected_distance,
            _expected_distance_parts,
            larger_is_better=False,
            uses_correlation=True,
            is_product=True,
        ),
        _built_in(log_odds, _log_odds_parts, larger_is_better=True),
        _built_in(mean_distance, _mean_distance_parts, larger_is_better=False, is_product=True),
        _built_in(cosine, _cosine_parts, larger_is_better=True, is_product=True),
        _built_in(inner_product, _inner_product_parts, larger_is_better=True, is_product=True),
    )
}
