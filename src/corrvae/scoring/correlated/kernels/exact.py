"""The measure of every search: pre-activations and expected distances of single pairs in float64.

No freedom is given to the compiler, and every sum is taken in one order whatever stands beside the pair. So a pair has
one distance to the last bit, the same for both orders of its points and for points that equal them.
"""

import numpy as np

from corrvae.compiling import kernel
from corrvae.scoring.kernels.exact import mean_distance

# Pairs whose products share what is read of the weights.
_TOGETHER = 4


@kernel(error_model="numpy")
def perceptron(halves_i, halves_j, rows, columns, weight, bias, a):
    """Write a under a perceptron of one hidden layer; halves hold A and B of each point.

    `weight` (hidden, dim) already halves the sum over both orders.
    """
    width, dim = weight.shape
    hidden = np.zeros((_TOGETHER, width))
    sums = np.zeros((_TOGETHER, dim))
    for begin in range(0, len(rows), _TOGETHER):
        end = min(begin + _TOGETHER, len(rows))
        for pair in range(begin, end):
            a_i, b_i = halves_i[rows[pair], 0], halves_i[rows[pair], 1]
            a_j, b_j = halves_j[columns[pair], 0], halves_j[columns[pair], 1]
            both = hidden[pair - begin]
            for h in range(width):
                there = np.float64(a_i[h]) + np.float64(b_j[h])
                back = np.float64(a_j[h]) + np.float64(b_i[h])
                both[h] = (0.0 if there <= 0.0 else there) + (0.0 if back <= 0.0 else back)
        s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
        sums[:] = bias
        for h in range(width):
            x0, x1, x2, x3 = hidden[0, h], hidden[1, h], hidden[2, h], hidden[3, h]
            of_unit = weight[h]
            for k in range(dim):
                w = np.float64(of_unit[k])
                s0[k] += x0 * w
                s1[k] += x1 * w
                s2[k] += x2 * w
                s3[k] += x3 * w
        for pair in range(begin, end):
            a[pair] = sums[pair - begin]


@kernel(error_model="numpy")
def bilinear(entries_i, entries_j, rows, columns, constant, a):
    """Write a = p_i . p_j - q_i . q_j + constant; entries (points, 2 rank, dim) hold p and then q."""
    n_entries = entries_i.shape[1]
    for pair in range(len(rows)):
        left, right, of_pair = entries_i[rows[pair]], entries_j[columns[pair]], a[pair]
        for k in range(len(constant)):
            of_pair[k] = constant[k]
        for entry in range(n_entries):
            sign = 1.0 if 2 * entry < n_entries else -1.0
            for k in range(len(constant)):
                of_pair[k] += sign * (np.float64(left[entry, k]) * np.float64(right[entry, k]))


@kernel(error_model="numpy")
def metric(image_i, image_j, rows, columns, start, slope, a):
    """Write a_k = start_k - slope_k |v_i - v_j|^2; images hold the v of each point."""
    for pair in range(len(rows)):
        gap = mean_distance(image_i[rows[pair]], image_j[columns[pair]])
        for k in range(len(start)):
            a[pair, k] = start[k] - slope[k] * gap


@kernel(error_model="numpy")
def distances(mean_i, stddev_i, mean_j, stddev_j, rows, columns, a, values):
    """Write the expected distance of each pair, in the form in which no term is negative."""
    for pair in range(len(rows)):
        i, j = rows[pair], columns[pair]
        total = 0.0
        for k in range(a.shape[1]):
            apart = np.float64(mean_i[i, k]) - np.float64(mean_j[j, k])
            spread = np.float64(stddev_i[i, k]) - np.float64(stddev_j[j, k])
            product = np.float64(stddev_i[i, k]) * np.float64(stddev_j[j, k])
            # 2 (1 - rho) = 4 sigmoid(-2 a), which does not cancel where rho is near 1
            total += apart * apart + spread * spread + 4.0 / (1.0 + np.exp(2.0 * a[pair, k])) * product
        values[pair] = total
