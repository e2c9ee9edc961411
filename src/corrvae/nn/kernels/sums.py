"""Sums over gathered rows as single loops, for the CPU.

On small batches a chain of tensor operations costs more than its arithmetic: each takes some ten microseconds, forward
and again backward, whatever it computes. These loops take the place of the longest chains. They are exact to rounding,
add in a fixed order, and let infinities and not-a-numbers through.
"""

import numpy as np

from corrvae.compiling import kernel

# Sums may be reordered and fused into vector instructions; nothing is assumed about the values.
_FREEDOM = {"reassoc", "contract", "nsz"}


@kernel(fastmath=_FREEDOM, error_model="numpy")
def draw_and_compare(joint, noise, pairs, apart, together, constant, z, kl, values):
    """For rows [mean, stddev]: draws, KL divergences from the standard normal, and a quadratic form of pairs of rows.

    Writes mean + stddev noise to `z` and the divergence to `kl`, for as many rows as there is noise for, and sum_k of
    ``apart (x_i - x_j)^2 + together (x_i + x_j)^2``, plus a constant, to `values`.
    """
    half = noise.shape[1]
    # logarithms of products: those of four numbers of single precision stay within the range of double precision
    group = 4 if joint.itemsize == 4 else 1
    for row in range(len(noise)):
        squares = joint.dtype.type(0)
        for k in range(half):
            mean, stddev = joint[row, k], joint[row, half + k]
            z[row, k] = mean + stddev * noise[row, k]
            squares += mean * mean + stddev * stddev
        logs, product = 0.0, 1.0
        for k in range(half):
            product *= joint[row, half + k]
            if (k + 1) % group == 0:
                logs += np.log(product)
                product = 1.0
        kl[row] = (squares - half) / 2 - (logs + np.log(product))
    for pair in range(len(pairs)):
        i, j = pairs[pair, 0], pairs[pair, 1]
        total = constant[()]
        for k in range(joint.shape[1]):
            difference, both = joint[i, k] - joint[j, k], joint[i, k] + joint[j, k]
            total += apart[k] * difference * difference + together[k] * both * both
        values[pair] = total


@kernel(fastmath=_FREEDOM, error_model="numpy")
def draw_and_compare_gradient(joint, noise, pairs, apart, together, of_z, of_kl, of_values, into):
    """Write the gradient of `draw_and_compare` with respect to its rows to `into`."""
    half, n_drawn = noise.shape[1], len(noise)
    for row in range(n_drawn):
        for k in range(half):
            mean, stddev = joint[row, k], joint[row, half + k]
            into[row, k] = of_z[row, k] + of_kl[row] * mean
            into[row, half + k] = of_z[row, k] * noise[row, k] + of_kl[row] * (stddev - 1 / stddev)
    for row in range(n_drawn, len(joint)):
        for k in range(2 * half):
            into[row, k] = 0
    for pair in range(len(pairs)):
        i, j = pairs[pair, 0], pairs[pair, 1]
        scale = of_values[pair] + of_values[pair]
        for k in range(joint.shape[1]):
            across = scale * apart[k] * (joint[i, k] - joint[j, k])
            along = scale * together[k] * (joint[i, k] + joint[j, k])
            into[i, k] += along + across
            into[j, k] += along - across


@kernel(fastmath=_FREEDOM, error_model="numpy")
def soften_gradient(gradient, slopes, totals):
    """Lead a gradient back through softplus on the right half, in place; its derivative is given.

    The sum of each column of the result goes to `totals`.
    """
    half, zero = slopes.shape[1], gradient.dtype.type(0)
    for k in range(len(totals)):
        totals[k] = zero
    for row in range(len(gradient)):
        for k in range(half):
            gradient[row, half + k] *= slopes[row, k]
        for k in range(2 * half):
            totals[k] += gradient[row, k]


@kernel(fastmath=_FREEDOM, error_model="numpy")
def rectify_gradient(gradient, rectified, totals):
    """Lead a gradient back through ReLU, in place, and write the sum of each of its columns to `totals`."""
    zero = gradient.dtype.type(0)
    for k in range(len(totals)):
        totals[k] = zero
    for row in range(len(gradient)):
        for k in range(gradient.shape[1]):
            passed = zero if rectified[row, k] <= zero else gradient[row, k]
            gradient[row, k] = passed
            totals[k] += passed


@kernel(fastmath=_FREEDOM, error_model="numpy")
def log_likelihood_of_counts(outputs, probabilities, columns, offsets, counts, values):
    """Sum each row's counts times log softmax(outputs), given the softmax.

    A log-probability is that of the row's largest output, which is not small, plus the difference of the outputs.
    """
    for row in range(len(outputs)):
        largest = 0
        for k in range(outputs.shape[1]):
            # an output that is not a number counts as largest, so that it is passed on
            if not outputs[row, k] <= outputs[row, largest]:
                largest = k
        # kept apart from the differences, which stay small where all outputs are large
        total, draws = outputs.dtype.type(0), outputs.dtype.type(0)
        for entry in range(offsets[row], offsets[row + 1]):
            total += counts[entry] * (outputs[row, columns[entry]] - outputs[row, largest])
            draws += counts[entry]
        values[row] = total + draws * np.log(probabilities[row, largest])


@kernel(fastmath=_FREEDOM, error_model="numpy")
def counts_gradient(probabilities, columns, offsets, counts, gradient, into, totals):
    """Write the gradient of `log_likelihood_of_counts` with respect to the outputs to `into`.

    The sum of each column of the result goes to `totals`.
    """
    zero = probabilities.dtype.type(0)
    for k in range(len(totals)):
        totals[k] = zero
    for row in range(len(probabilities)):
        total = probabilities.dtype.type(0)
        for entry in range(offsets[row], offsets[row + 1]):
            total += counts[entry]
        scale = -total * gradient[row]
        for k in range(probabilities.shape[1]):
            into[row, k] = scale * probabilities[row, k]
        for entry in range(offsets[row], offsets[row + 1]):
            into[row, columns[entry]] += counts[entry] * gradient[row]
        for k in range(len(totals)):
            totals[k] += into[row, k]


@kernel(fastmath=_FREEDOM, error_model="numpy")
def symmetric_hidden(table, first, second, hidden):
    """Write relu(A_i + B_j) + relu(A_j + B_i) for each pair; rows 2i and 2i + 1 of the table hold A_i and B_i."""
    zero = table.dtype.type(0)
    for pair in range(len(first)):
        a_i, b_i = table[2 * first[pair]], table[2 * first[pair] + 1]
        a_j, b_j = table[2 * second[pair]], table[2 * second[pair] + 1]
        for k in range(table.shape[1]):
            there, back = a_i[k] + b_j[k], a_j[k] + b_i[k]
            # a sum that is not a number is passed on, as torch's ReLU does
            hidden[pair, k] = (zero if there <= zero else there) + (zero if back <= zero else back)


@kernel(fastmath=_FREEDOM, error_model="numpy")
def symmetric_hidden_gradient(table, first, second, gradient, into):
    """Add the gradient of `symmetric_hidden` with respect to its table to `into`."""
    zero = table.dtype.type(0)
    for pair in range(len(first)):
        for i, j in ((first[pair], second[pair]), (second[pair], first[pair])):
            a, b = table[2 * i], table[2 * j + 1]
            into_a, into_b = into[2 * i], into[2 * j + 1]
            for k in range(table.shape[1]):
                passed = zero if a[k] + b[k] <= zero else gradient[pair, k]
                into_a[k] += passed
                into_b[k] += passed


@kernel(fastmath=_FREEDOM, error_model="numpy")
def signed_products(rows, first, second, rank, values):
    """Add p_i . p_j - q_i . q_j to `values`, for rows that hold `rank` entries of p and then of q."""
    dim = values.shape[1]
    for pair in range(len(first)):
        x, y = rows[first[pair]], rows[second[pair]]
        for entry in range(2 * rank):
            sign = rows.dtype.type(1 if entry < rank else -1)
            begin = entry * dim
            for k in range(dim):
                values[pair, k] += sign * (x[begin + k] * y[begin + k])


@kernel(fastmath=_FREEDOM, error_model="numpy")
def signed_products_gradient(rows, first, second, rank, gradient, into):
    """Add the gradient of `signed_products` with respect to its rows to `into`."""
    dim = gradient.shape[1]
    for pair in range(len(first)):
        i, j = first[pair], second[pair]
        for entry in range(2 * rank):
            sign = rows.dtype.type(1 if entry < rank else -1)
            begin = entry * dim
            for k in range(dim):
                scaled = sign * gradient[pair, k]
                into[i, begin + k] += scaled * rows[j, begin + k]
                into[j, begin + k] += scaled * rows[i, begin + k]
