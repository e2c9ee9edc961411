"""What matched points say of a cause: the balance of covariates, and the average effect with its error."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int
from scipy import sparse, stats


@final
@dataclass(frozen=True, eq=False)
class Balance:
    """How alike two sides are in each covariate, before and after matching.

    Attributes
    ----------
    names
        The covariates.
    before, after
        Standardised mean differences (left mean - right mean) / s, with s the standard deviation on the left side
        before matching, so that both have the same unit. (Where it is 0, s is that of both sides together.) Sizes under
        0.1 are usually taken for balanced.
    ratio_before, ratio_after
        Variance on the left side over that on the right; 1 is balanced.
    n_left, n_right
        Points with a partner.
    effective_left, effective_right
        Effective sample sizes (sum w)^2 / sum w^2 of the weights; right points that are used often make theirs small.
    """

    names: list[str]
    before: Float[np.ndarray, " covariates"]
    after: Float[np.ndarray, " covariates"]
    ratio_before: Float[np.ndarray, " covariates"]
    ratio_after: Float[np.ndarray, " covariates"]
    n_left: int
    n_right: int
    effective_left: float
    effective_right: float

    def to_table(self) -> pa.Table:
        """Return a row for each covariate."""
        names = ("before", "after", "ratio_before", "ratio_after")
        return pa.table({"covariate": self.names, **{name: getattr(self, name) for name in names}})

    def __repr__(self) -> str:
        before, after = (np.abs(part).max(initial=0.0) for part in (self.before, self.after))
        covariates = "1 covariate" if len(self.names) == 1 else f"{len(self.names):,} covariates"
        return f"Balance({covariates}, largest difference {before:.3g} before and {after:.3g} after)"


def compare(
    left: Any,
    right: Any,
    left_weights: Float[np.ndarray, " left"],
    right_weights: Float[np.ndarray, " right"],
    names: list[str] | None = None,
) -> Balance:
    """Return the balance of covariates (dense or sparse) between two sides, without weights and with them."""
    everyone = np.ones(len(left_weights)), np.ones(len(right_weights))
    (left_mean, left_variance), (right_mean, right_variance) = map(_moments, (left, right), everyone)
    matched, partners = map(_moments, (left, right), (left_weights, right_weights))
    both: Any = sparse.vstack([left, right]).tocsr() if sparse.issparse(left) else np.concatenate([left, right])
    spread = np.where(left_variance > 0.0, left_variance, _moments(both, np.concatenate(everyone))[1])
    scale = np.sqrt(np.where(spread > 0.0, spread, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant column has no ratio
        ratio_before, ratio_after = left_variance / right_variance, matched[1] / partners[1]
    return Balance(
        names=[str(k) for k in range(len(scale))] if names is None else names,
        before=(left_mean - right_mean) / scale,
        after=(matched[0] - partners[0]) / scale,
        ratio_before=ratio_before,
        ratio_after=ratio_after,
        n_left=int((left_weights > 0).sum()),
        n_right=int((right_weights > 0).sum()),
        effective_left=_effective(left_weights),
        effective_right=_effective(right_weights),
    )


def _moments(points: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances under weights that stand for reliabilities: unbiased, and the usual if all are 1."""
    total = weights.sum()
    mean = np.asarray(points.T @ weights) / total
    if sparse.issparse(points):
        square = np.asarray(points.multiply(points).T @ weights) - total * mean**2
    else:
        square = weights @ (points - mean) ** 2
    freedom = total - (weights**2).sum() / total
    return mean, square / freedom if freedom > 0 else np.full(len(mean), np.nan)


def _effective(weights: np.ndarray) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


@final
@dataclass(frozen=True, eq=False)
class Effect:
    """The average effect on the left points that have a partner (ATT: average effect of treatment on the treated).

    Attributes
    ----------
    estimate
        The mean over these left points of their outcome less the mean outcome of their partners.
    standard_error
        Its standard error.
    interval
        Bounds of the confidence interval, by Student's t with one degree of freedom less than left points.
    level
        Its level.
    n_left, n_right
        Points with a partner.
    n_unmatched
        Left points without one: the estimate is silent about them.
    n_adjusted
        Covariates that the outcomes were adjusted for.
    """

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    n_left: int
    n_right: int
    n_unmatched: int
    n_adjusted: int

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Effect({self.estimate:.4g}, {self.level:.0%} interval {low:.4g} to {high:.4g}, "
            f"{self.n_left:,} of {self.n_left + self.n_unmatched:,} left points)"
        )


def average_effect(
    left: Float[np.ndarray, " left"],
    right: Float[np.ndarray, " right"],
    pairs: Int[np.ndarray, "pairs 2"],
    twins: Int[np.ndarray, "right neighbors"],
    *,
    level: float,
    n_adjusted: int = 0,
) -> Effect:
    """Return the average effect on the left points of some pairs, with the standard error of Abadie and Imbens (2006).

    With M_i partners of left point i, D_i its outcome less the mean of theirs, K_j the sum of 1 / M_i over the left
    points that right point j is a partner of and K'_j that of 1 / M_i^2, the estimate is the mean of the n D_i and

        variance = [ sum_i (D_i - estimate)^2 n / (n - 1) + sum_j (K_j^2 - K'_j) s_j^2 ] / n^2.

    The first sum alone is the error of the mean of paired differences. The second is for right points that have been
    used more than once, and 0 if there are none. s_j^2 is the variance of the outcome at j: J / (J + 1) times the
    squared difference between the outcome of j and the mean of its J nearest right points.

    A prediction may have been taken away from the outcomes `left` and `right`; `n_adjusted` are its covariates. `pairs`
    are positions in them. `twins` are the nearest right points of each right point, -1 where there are none.
    """
    treated, place, n_partners = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    share = 1.0 / n_partners[place]
    n = len(treated)
    differences = left[treated] - np.bincount(place, share * right[pairs[:, 1]])
    estimate = float(differences.mean())
    reuse = np.bincount(pairs[:, 1], share, len(right)) ** 2 - np.bincount(pairs[:, 1], share**2, len(right))
    again = np.flatnonzero(reuse > 1e-12)
    n_twins = (twins[again] >= 0).sum(axis=1)
    means = np.where(twins[again] >= 0, right[twins[again]], 0.0).sum(axis=1) / np.maximum(n_twins, 1)
    noise = n_twins / (n_twins + 1) * (right[again] - means) ** 2
    if (n_twins == 0).any():  # alone among right points of its kind
        known = noise[n_twins > 0]
        noise[n_twins == 0] = known.mean() if len(known) else right[np.unique(pairs[:, 1])].var(ddof=1)
    squares = ((differences - estimate) ** 2).sum() * n / (n - 1) if n > 1 else np.nan
    error = float(np.sqrt(squares + reuse[again] @ noise) / n)
    width = float(stats.t.ppf(0.5 + level / 2, max(n - 1, 1))) * error
    return Effect(
        estimate=estimate,
        standard_error=error,
        interval=(estimate - width, estimate + width),
        level=level,
        n_left=n,
        n_right=len(np.unique(pairs[:, 1])),
        n_unmatched=len(left) - n,
        n_adjusted=n_adjusted,
    )


def as_numbers(values: Any, name: str) -> Any:
    """Return values of points as a matrix of float64, dense or sparse as they are."""
    if sparse.issparse(values):
        return sparse.csr_array(values, dtype=np.float64)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers; encode words as columns of 0 and 1 ({error})") from None
    return numbers.reshape(len(numbers), -1)
