"""Expected squared distances of pairs, from what the pair network prepared of each point to one number.

Arithmetic is in float32 and its sums may be reordered; infinities and not-a-numbers pass through.
"""

import numpy as np
from numba import njit

from corrvae.monitor import STOP

_FREEDOM = {"reassoc", "contract", "nsz"}
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)

# tanh(x) = x P(x^2) / Q(x^2), fitted by us for least relative error (1.2e-8) over |x| < 8.5; beyond, 1 - tanh < 1e-7.
_REACH = np.float32(8.5)
_P0, _P1, _P2 = np.float32(0.999999988177541), np.float32(0.13413246778012067), np.float32(0.003534026696963662)
_P3, _P4 = np.float32(2.1251042260537565e-05), np.float32(1.4269226161042742e-08)
_Q1, _Q2 = np.float32(0.46746569511529795), np.float32(0.026022750696883347)
_Q3, _Q4 = np.float32(0.00033488645661480863), np.float32(8.145122470330612e-07)


@njit(cache=True, nogil=True, fastmath=_FREEDOM, error_model="numpy", inline="always")
def tanh(x):
    """Hyperbolic tangent within 4e-7, never beyond 1; unlike the library's it can be vectorised."""
    # comparisons, rather than min and max, let a not-a-number pass
    x = _REACH if x > _REACH else x
    x = -_REACH if x < -_REACH else x
    t = x * x
    value = (
        x * ((((_P4 * t + _P3) * t + _P2) * t + _P1) * t + _P0) / ((((_Q4 * t + _Q3) * t + _Q2) * t + _Q1) * t + _ONE)
    )
    value = _ONE if value > _ONE else value
    return -_ONE if value < -_ONE else value


@njit(cache=True, nogil=True, fastmath=_FREEDOM, error_model="numpy", inline="always")
def _distance(mean_i, stddev_i, mean_j, stddev_j, a):
    """Sum of (mu_i - mu_j)^2 + (s_i - s_j)^2 + 2 (1 - rho) s_i s_j: no term is negative, so nothing cancels."""
    total = _ZERO
    for k in range(len(a)):
        apart, spread = mean_i[k] - mean_j[k], stddev_i[k] - stddev_j[k]
        total += apart * apart + spread * spread + _TWO * (_ONE - tanh(a[k])) * (stddev_i[k] * stddev_j[k])
    return total


@njit(cache=True, nogil=True, fastmath=_FREEDOM, error_model="numpy")
def distances(mean_i, stddev_i, mean_j, stddev_j, rows, columns, a, values):
    """Write the expected distance of each pair of a row on the left and a row on the right, with correlation tanh a."""
    for pair in range(len(rows)):
        i, j = rows[pair], columns[pair]
        values[pair] = _distance(mean_i[i], stddev_i[i], mean_j[j], stddev_j[j], a[pair])


@njit(cache=True, nogil=True, fastmath=_FREEDOM, error_model="numpy")
def _hidden(halves_i, halves_j, rows, columns, hidden):
    """Write relu(A_i + B_j) + relu(A_j + B_i) for each pair; halves hold A and B of each point."""
    for pair in range(len(rows)):
        a_i, b_i = halves_i[rows[pair], 0], halves_i[rows[pair], 1]
        a_j, b_j = halves_j[columns[pair], 0], halves_j[columns[pair], 1]
        both = hidden[pair]
        for k in range(len(both)):
            there, back = a_i[k] + b_j[k], a_j[k] + b_i[k]
            both[k] = (_ZERO if there <= _ZERO else there) + (_ZERO if back <= _ZERO else back)


@njit(cache=True, nogil=True, error_model="numpy")
def perceptron_distances(
    mean_i, stddev_i, halves_i, mean_j, stddev_j, halves_j, rows, columns, weight, bias, tile, values, control
):
    """Expected distances under a perceptron of one hidden layer, `tile` pairs at a time.

    `weight` (hidden, dim) already halves the sum over both orders. Returns early when `control` says so.
    """
    hidden = np.empty((tile, len(weight)), np.float32)
    a = np.empty((tile, len(bias)), np.float32)
    for begin in range(0, len(rows), tile):
        if control[STOP]:
            return
        end = min(begin + tile, len(rows))
        n_pairs = end - begin
        _hidden(halves_i, halves_j, rows[begin:end], columns[begin:end], hidden)
        np.dot(hidden[:n_pairs], weight, a[:n_pairs])
        for pair in range(n_pairs):
            of_pair = a[pair]
            for k in range(len(bias)):
                of_pair[k] += bias[k]
        distances(mean_i, stddev_i, mean_j, stddev_j, rows[begin:end], columns[begin:end], a, values[begin:end])


@njit(cache=True, nogil=True, fastmath=_FREEDOM, error_model="numpy")
def bilinear_distances(
    mean_i, stddev_i, signed_i, mean_j, stddev_j, entries_j, rows, columns, constant, values, control
):
    """Expected distances under a = p_i . p_j - q_i . q_j + constant.

    `entries_j` (points, 2 rank, dim) holds p and then q; `signed_i` the same with q negated.
    """
    a = np.empty(len(constant), np.float32)
    n_entries = entries_j.shape[1]
    for pair in range(len(rows)):
        if pair % 1024 == 0 and control[STOP]:
            return
        i, j = rows[pair], columns[pair]
        for k in range(len(a)):
            a[k] = constant[k]
        # four entries at a time, so that a is read and written a quarter as often
        whole = n_entries - n_entries % 4
        for entry in range(0, whole, 4):
            x0, x1, x2, x3 = signed_i[i, entry], signed_i[i, entry + 1], signed_i[i, entry + 2], signed_i[i, entry + 3]
            y0, y1 = entries_j[j, entry], entries_j[j, entry + 1]
            y2, y3 = entries_j[j, entry + 2], entries_j[j, entry + 3]
            for k in range(len(a)):
                a[k] += x0[k] * y0[k] + x1[k] * y1[k] + x2[k] * y2[k] + x3[k] * y3[k]
        for entry in range(whole, n_entries, 2):
            x0, x1 = signed_i[i, entry], signed_i[i, entry + 1]
            y0, y1 = entries_j[j, entry], entries_j[j, entry + 1]
            for k in range(len(a)):
                a[k] += x0[k] * y0[k] + x1[k] * y1[k]
        values[pair] = _distance(mean_i[i], stddev_i[i], mean_j[j], stddev_j[j], a)
