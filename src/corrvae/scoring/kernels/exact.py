"""Scores of single pairs in float64, the measure of every search.

No freedom is given to the compiler: sums are taken in one order wherever these functions are used, so that equal points
have equal scores to the last bit, and ties are ties.
"""

from typing import NamedTuple

import numpy as np

from corrvae.compiling import kernel

MEAN_DISTANCE, EXPECTED_DISTANCE, COSINE, LOG_ODDS = range(4)

# Factors multiplied before a logarithm is taken; none is below 1e-16, so their product cannot underflow.
_FACTORS = 16


class Side(NamedTuple):
    """The points on one side of the pairs.

    Attributes
    ----------
    mean, stddev
        A row for each point, in float32.
    variance
        Sum of the squared standard deviations, in float64.
    """

    mean: np.ndarray
    stddev: np.ndarray
    variance: np.ndarray


@kernel(error_model="numpy")
def mean_distance(mean_i, mean_j):
    """Squared distance of two means, in four sums that the processor can form side by side."""
    dim = len(mean_i)
    sums = (0.0, 0.0, 0.0, 0.0)
    whole = dim - dim % 4
    for k in range(0, whole, 4):
        a = np.float64(mean_i[k]) - np.float64(mean_j[k])
        b = np.float64(mean_i[k + 1]) - np.float64(mean_j[k + 1])
        c = np.float64(mean_i[k + 2]) - np.float64(mean_j[k + 2])
        d = np.float64(mean_i[k + 3]) - np.float64(mean_j[k + 3])
        sums = (sums[0] + a * a, sums[1] + b * b, sums[2] + c * c, sums[3] + d * d)
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    for k in range(whole, dim):
        a = np.float64(mean_i[k]) - np.float64(mean_j[k])
        total += a * a
    return total


@kernel(error_model="numpy")
def cosine(mean_i, mean_j):
    """Cosine of two means; 0 if one of them is 0."""
    product, square_i, square_j = 0.0, 0.0, 0.0
    for k in range(len(mean_i)):
        x, y = np.float64(mean_i[k]), np.float64(mean_j[k])
        product += x * y
        square_i += x * x
        square_j += y * y
    if square_i == 0.0 or square_j == 0.0:
        return 0.0
    return min(1.0, max(-1.0, product / (np.sqrt(square_i) * np.sqrt(square_j))))


@kernel(error_model="numpy")
def log_odds(mean_i, stddev_i, mean_j, stddev_j, tau):
    """Parts of the link log-odds with the means and without, by sums in which little cancels.

    With t = |tau|, m_j turned by the sign of tau, v = min(s, 1)^2 and D = (1 - t^2) + t^2 (v_i + (1 - v_i) v_j), the
    numerator is t (m_i - m_j)^2 - t (1 - t) (m_i^2 + m_j^2) - t^2 (v_j m_i^2 + v_i m_j^2).
    """
    quadratic, logarithm, factor = 0.0, 0.0, 1.0
    for k in range(len(mean_i)):
        t = abs(tau[k])
        x = np.float64(mean_i[k])
        y = np.float64(mean_j[k]) if tau[k] >= 0.0 else -np.float64(mean_j[k])
        v = min(np.float64(stddev_i[k]) * np.float64(stddev_i[k]), 1.0)
        w = min(np.float64(stddev_j[k]) * np.float64(stddev_j[k]), 1.0)
        # Symmetric to the bit: neither v + (1 - v) w nor w + (1 - w) v is.
        determinant = (1.0 - t) * (1.0 + t) + t * t * ((v + w) - v * w)
        squares = x * x + y * y
        crossed = w * (x * x) + v * (y * y)
        quadratic += (t * ((x - y) * (x - y)) - t * (1.0 - t) * squares - t * t * crossed) / determinant
        factor *= determinant
        if k % _FACTORS == _FACTORS - 1:
            logarithm += np.log(factor)
            factor = 1.0
    return -0.5 * quadratic, -0.5 * (logarithm + np.log(factor))


@kernel(error_model="numpy")
def two_parts(kind, left, i, right, j, tau):
    """Part of a pair's score that the means give, and the part of the standard deviations; correlations apart."""
    if kind == COSINE:
        return cosine(left.mean[i], right.mean[j]), 0.0
    if kind == LOG_ODDS:
        return log_odds(left.mean[i], left.stddev[i], right.mean[j], right.stddev[j], tau)
    distance = mean_distance(left.mean[i], right.mean[j])
    return distance, (left.variance[i] + right.variance[j] if kind == EXPECTED_DISTANCE else 0.0)


@kernel(error_model="numpy")
def fill_parts(kind, left, right, tau, pairs, of_means, of_variances):
    """Write both parts of each pair (row of the left points, row of the right)."""
    for pair in range(len(pairs)):
        of_means[pair], of_variances[pair] = two_parts(kind, left, pairs[pair, 0], right, pairs[pair, 1], tau)
