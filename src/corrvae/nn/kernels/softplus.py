"""Softplus and its derivative in single precision, from series that a compiler turns into vector instructions.

A call to the mathematical library for each number takes ten times as long, and several passes of tensor operations,
which do have such instructions, twice as long.
"""

from math import factorial

import numpy as np

from corrvae.compiling import kernel

_PER_LOG_2 = np.float32(1.4426950408889634)
# log 2 in two parts, of which the first has so few digits that its multiples are exact
_LOG_2 = np.float32(0.693145751953125)
_LOG_2_REST = np.float32(1.42860682030941723e-06)
_BIAS = np.int32(127)  # of the exponent in the binary format
_EXP = tuple(np.float32(1 / factorial(k)) for k in reversed(range(8)))
_ARTANH = tuple(np.float32(1 / k) for k in reversed(range(1, 16, 2)))


# Nothing may be reordered here: the small part of log 2 would be lost.
@kernel(fastmath={"contract"}, error_model="numpy")
def soften(outputs, floor, slopes):
    """Turn the right half x into floor + softplus(x), in place, and write the derivative of softplus to `slopes`.

    With t = exp(-|x|), softplus is max(x, 0) + log(1 + t), and its derivative 1 / (1 + t) or t / (1 + t).
    """
    zero, one, two, largest = np.float32(0), np.float32(1), np.float32(2), np.float32(88)
    half = slopes.shape[1]
    for row in range(len(outputs)):
        for k in range(half):
            x = outputs[row, half + k]
            size = -x if x < zero else x
            size = largest if size > largest else size
            # t = 2^power exp(rest) with |rest| <= log(2) / 2; less than 2^-126 is 0
            power = np.floor(np.float32(0.5) - size * _PER_LOG_2)
            rest = -size - power * _LOG_2 - power * _LOG_2_REST
            series = zero
            for coefficient in _EXP:
                series = series * rest + coefficient
            t = series * np.int32((np.int32(power) + _BIAS) << np.int32(23)).view(np.float32)
            # log(1 + t) = 2 artanh(t / (2 + t)), an argument of at most a third
            ratio = t / (two + t)
            square = ratio * ratio
            series = zero
            for coefficient in _ARTANH:
                series = series * square + coefficient
            outputs[row, half + k] = (zero if x < zero else x) + two * ratio * series + floor
            slopes[row, k] = (t if x < zero else one) / (one + t)
