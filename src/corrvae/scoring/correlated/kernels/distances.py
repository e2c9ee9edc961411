"""Expected squared distances of pairs, from what the pair network prepared of each point to one number.

Arithmetic is in float32 and its sums may be reordered; infinities and not-a-numbers pass through.
"""

import numpy as np

from corrvae.compiling import kernel
from corrvae.monitor import STOP

_FREEDOM = {"reassoc", "contract", "nsz"}
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)

# exp(x) = 2^n exp(r) with n the integer nearest to x / log 2: r is formed with log 2 in two parts, and exp(r) by a
# polynomial that we fitted for least relative error (2e-9) over |r| < 0.35.
_REACH = np.float32(87)
_LOG2_OF_E, _LOG_2, _LOG_2_REST = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
_SHIFT = np.float32(12582912)  # 1.5 2^23: what is added to it is rounded to an integer, which its lowest bits then hold
_EXPONENT_BITS, _EXPONENT_OF_ONE = np.int32(23), np.int32(127)
_E1, _E2 = np.float32(1.000000034), np.float32(0.4999999385)
_E3, _E4 = np.float32(0.1666642189), np.float32(0.04166805663)
_E5, _E6 = np.float32(0.008374965137), np.float32(0.001384271156)


# No freedom to reorder in here: the compiler would take the two parts of log 2 together, and the shift away.
@kernel(fastmath={"contract"}, error_model="numpy")
def one_minus_tanh(a):
    """1 - tanh(a) = 2 sigmoid(-2 a) to a relative error below 8 units of 2^-24; unlike the library's it vectorises.

    Beyond |a| = 43.5 it stays as it is there, within 1e-37. Not-a-numbers pass.
    """
    x = a + a
    # comparisons, rather than min and max, let a not-a-number pass
    x = _REACH if x > _REACH else x
    x = -_REACH if x < -_REACH else x
    shifted = x * _LOG2_OF_E + _SHIFT
    n = shifted - _SHIFT
    r = (x - n * _LOG_2) - n * _LOG_2_REST
    power = ((((((_E6 * r + _E5) * r + _E4) * r + _E3) * r + _E2) * r + _E1) * r) + _ONE
    bits = np.int32(np.float32(shifted).view(np.int32) + _EXPONENT_OF_ONE)
    scale = np.int32(bits << _EXPONENT_BITS).view(np.float32)
    return _TWO / (_ONE + power * scale)


@kernel(fastmath=_FREEDOM, error_model="numpy", inline="always")
def _distance(mean_i, stddev_i, mean_j, stddev_j, a):
    """Sum of (mu_i - mu_j)^2 + (s_i - s_j)^2 + 2 (1 - rho) s_i s_j: no term is negative, so nothing cancels."""
    total = _ZERO
    for k in range(len(a)):
        apart, spread = mean_i[k] - mean_j[k], stddev_i[k] - stddev_j[k]
        total += apart * apart + spread * spread + _TWO * one_minus_tanh(a[k]) * (stddev_i[k] * stddev_j[k])
    return total


@kernel(fastmath=_FREEDOM, error_model="numpy")
def distances(mean_i, stddev_i, mean_j, stddev_j, rows, columns, a, values):
    """Write the expected distance of each pair of a row on the left and a row on the right, with correlation tanh a."""
    for pair in range(len(rows)):
        i, j = rows[pair], columns[pair]
        values[pair] = _distance(mean_i[i], stddev_i[i], mean_j[j], stddev_j[j], a[pair])


@kernel(fastmath=_FREEDOM, error_model="numpy")
def _hidden(halves_i, halves_j, rows, columns, hidden):
    """Write relu(A_i + B_j) + relu(A_j + B_i) for each pair; halves hold A and B of each point."""
    for pair in range(len(rows)):
        a_i, b_i = halves_i[rows[pair], 0], halves_i[rows[pair], 1]
        a_j, b_j = halves_j[columns[pair], 0], halves_j[columns[pair], 1]
        both = hidden[pair]
        for k in range(len(both)):
            there, back = a_i[k] + b_j[k], a_j[k] + b_i[k]
            both[k] = (_ZERO if there <= _ZERO else there) + (_ZERO if back <= _ZERO else back)


@kernel(error_model="numpy")
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


@kernel(fastmath=_FREEDOM, error_model="numpy")
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


@kernel(fastmath=_FREEDOM, error_model="numpy")
def metric_distances(
    mean_i, stddev_i, image_i, mean_j, stddev_j, image_j, rows, columns, start, slope, values, control
):
    """Expected distances under a_k = start_k - slope_k |v_i - v_j|^2, where images hold the v of each point."""
    for pair in range(len(rows)):
        if pair % 1024 == 0 and control[STOP]:
            return
        i, j = rows[pair], columns[pair]
        v_i, v_j, gap = image_i[i], image_j[j], _ZERO
        for k in range(len(v_i)):
            step = v_i[k] - v_j[k]
            gap += step * step
        m_i, s_i, m_j, s_j, total = mean_i[i], stddev_i[i], mean_j[j], stddev_j[j], _ZERO
        # as in _distance, with an a that needs no array
        for k in range(len(start)):
            apart, spread = m_i[k] - m_j[k], s_i[k] - s_j[k]
            fall = one_minus_tanh(start[k] - slope[k] * gap)
            total += apart * apart + spread * spread + _TWO * fall * (s_i[k] * s_j[k])
        values[pair] = total


@kernel(error_model="numpy")
def errors(values, rows, columns, left, right, share, found):
    """Write what each pair's value may be off by: a share of it, and the product of its points' factors."""
    for pair in range(len(rows)):
        total = share * np.float64(values[pair])
        i, j = rows[pair], columns[pair]
        for factor in range(left.shape[1]):
            total += left[i, factor] * right[j, factor]
        found[pair] = total
