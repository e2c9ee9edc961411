"""Link log-odds of every row against every column, in float32."""

import numpy as np

from corrvae.compiling import kernel

# Columns taken together: their sums stay in the innermost cache.
_COLUMNS = 512
_LN2 = np.float32(np.log(2.0))


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def fill_block(mean, variance, other_mean, other_variance, first_column, tau, group, block):
    """Write minus the log-odds, by the sums of `exact.log_odds`.

    Parameters
    ----------
    mean, variance
        Rows: means, and squared standard deviations of at most 1.
    other_mean, other_variance
        Columns, transposed, the means turned by the sign of tau.
    first_column
        The column that the block begins with.
    tau
        Absolute values, in float64.
    group
        Factors that can be multiplied without underflow.
    block
        The result.
    """
    n_rows, n_columns = block.shape
    dim = mean.shape[1]
    one = np.float32(1.0)
    quadratic = np.empty(_COLUMNS, np.float32)
    product = np.empty(_COLUMNS, np.float32)
    logarithm = np.empty(_COLUMNS, np.float32)
    for begin in range(0, n_columns, _COLUMNS):
        size = min(_COLUMNS, n_columns - begin)
        for row in range(n_rows):
            quadratic[:size] = 0.0
            product[:size] = 1.0
            logarithm[:size] = 0.0
            for k in range(dim):
                x, v = mean[row, k], variance[row, k]
                complement = one - v
                t = np.float32(tau[k])
                t_rest = np.float32(tau[k] * (1.0 - tau[k]))
                t_square = np.float32(tau[k] * tau[k])
                floor = np.float32((1.0 - tau[k]) * (1.0 + tau[k]))
                first = first_column + begin
                ys, ws = other_mean[k, first : first + size], other_variance[k, first : first + size]
                for c in range(size):
                    y, w = ys[c], ws[c]
                    determinant = floor + t_square * (v + complement * w)
                    x_square, y_square, apart = x * x, y * y, x - y
                    numerator = t * apart * apart - t_rest * (x_square + y_square)
                    numerator -= t_square * (w * x_square + v * y_square)
                    quadratic[c] += numerator / determinant
                    product[c] *= determinant
                if (k + 1) % group == 0:
                    split_exponents(product[:size], logarithm[:size])
            for c in range(size):
                block[row, begin + c] = np.float32(0.5) * (quadratic[c] + logarithm[c] * _LN2 + np.log(product[c]))


@kernel(error_model="numpy")
def split_exponents(product, exponents):
    """Move the powers of two of positive normal numbers from `product` to `exponents`."""
    bits = product.view(np.int32)
    for c in range(len(bits)):
        exponents[c] += np.float32((bits[c] >> 23) - 127)
        bits[c] = (bits[c] & 0x7FFFFF) | 0x3F800000
