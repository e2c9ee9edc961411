"""Bounds on expected distances that hold for every correlation.

Since |rho| <= 1, ||mu_i - mu_j||^2 + ||s_i - s_j||^2 <= dis_ij <= ||mu_i - mu_j||^2 + ||s_i + s_j||^2. As inner
products these take 2 d multiplications for each pair; a perceptron of 1000 takes 1000 d.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

_UNIT = 2.0**-24


@final
@dataclass(frozen=True, eq=False)
class Bounds:
    """Numbers that no evaluated distance of a pair is below, or above."""

    lower: Float[np.ndarray, "rows columns"]
    upper: Float[np.ndarray, "rows columns"]


def rounding_slack(dim: int) -> float:
    """Largest rounding error of a bound and an evaluation together, as a share of |mu|^2 + |s|^2 of both points.

    An inner product of n terms in float32 is within n u of the product of the two lengths, in any order of summation (u
    is half the distance between 1 and the next number); a distance is a sum of `dim` terms, none negative, each exact
    to a few u, and at most twice the sum of the squares. So 2 dim for the bound's products, 2 dim for the evaluation,
    and a constant for all else.

    Examples
    --------
    >>> rounding_slack(100) < 3e-5
    True
    """
    return 1.01 * (4 * dim + 40) * _UNIT


def lower_bounds(
    mean_i: Float[np.ndarray, "rows dim"],
    stddev_i: Float[np.ndarray, "rows dim"],
    mean_j: Float[np.ndarray, "columns dim"],
    stddev_j: Float[np.ndarray, "columns dim"],
) -> Float[np.ndarray, "rows columns"]:
    """Give `Bounds.lower` of every row on the left and every row on the right.

    Examples
    --------
    >>> mean, stddev = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    >>> lower_bounds(mean, stddev, mean + 3, 2 * stddev).round(2)
    array([[20.]], dtype=float32)
    """
    joint_i, joint_j = np.concatenate([mean_i, stddev_i], axis=1), np.concatenate([mean_j, stddev_j], axis=1)
    lower = joint_i @ (-2.0 * joint_j.T)
    lower += _sizes(mean_i, stddev_i)[0][:, None]
    lower += _sizes(mean_j, stddev_j)[0]
    return lower


def bounds(
    mean_i: Float[np.ndarray, "rows dim"],
    stddev_i: Float[np.ndarray, "rows dim"],
    mean_j: Float[np.ndarray, "columns dim"],
    stddev_j: Float[np.ndarray, "columns dim"],
) -> Bounds:
    """Give both bounds of every row on the left and every row on the right.

    Examples
    --------
    >>> mean, stddev = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    >>> bounds(mean, stddev, mean + 3, 2 * stddev).upper.round(2)
    array([[36.]], dtype=float32)
    """
    of_means, of_spreads = mean_i @ (-2.0 * mean_j.T), stddev_i @ (2.0 * stddev_j.T)
    (less_i, more_i), (less_j, more_j) = _sizes(mean_i, stddev_i), _sizes(mean_j, stddev_j)
    lower = of_means - of_spreads
    lower += less_i[:, None]
    lower += less_j
    of_means += of_spreads
    of_means += more_i[:, None]
    of_means += more_j
    return Bounds(lower, of_means)


def _sizes(mean: np.ndarray, stddev: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|mu|^2 + |s|^2 of each row, made smaller and larger by the slack."""
    size = np.square(mean, dtype=np.float64).sum(1) + np.square(stddev, dtype=np.float64).sum(1)
    slack = rounding_slack(mean.shape[1])
    return ((1.0 - slack) * size).astype(np.float32), ((1.0 + slack) * size).astype(np.float32)
