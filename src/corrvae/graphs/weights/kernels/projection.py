"""Random projections of a weighted core, solved by conjugate gradients, many columns at once.

With B the signed incidence matrix, W the conductances and L = B' W B, the columns x = L+ B' W^1/2 s of random signs s
embed the vertices so that squared distances, averaged over columns, are resistances (Johnson and Lindenstrauss). The
same signs read W^1/2 B x give a second estimate: P = W^1/2 B L+ B' W^1/2 is a projection, and the wanted weight is
its diagonal entry, which is s_e (P s)_e on average as well as (P s)_e^2.
"""

import numpy as np
from numba import njit

WIDTH = 32  # columns of one block: one bit of a random word each


@njit(cache=True, nogil=True, inline="always")
def _random_word(counter):
    """Hash a counter to 32 random bits (the finaliser of SplitMix64)."""
    z = counter + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint32(z ^ (z >> np.uint64(31)))


@njit(cache=True, nogil=True, inline="always")
def _sign(word, c):
    return np.float32(1.0) - np.float32(2.0) * np.float32((word >> np.uint32(c)) & np.uint32(1))


@njit(cache=True, nogil=True)
def project(tails, heads, roots, key, out):
    """Write B' W^1/2 s to `out` (vertices, WIDTH); `roots` are the square roots of the conductances."""
    out[:] = 0.0
    for e in range(tails.size):
        word = _random_word(np.uint64(e) ^ key)
        tail, head = out[tails[e]], out[heads[e]]
        for c in range(WIDTH):
            x = roots[e] * _sign(word, c)
            tail[c] += x
            head[c] -= x


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def read_signs_and_squares(tails, heads, roots, key, x):
    """Return the sums over the columns of s_e y_e and of y_e^2, with y = W^1/2 B x."""
    linear = np.empty(tails.size, x.dtype)
    quadratic = np.empty(tails.size, x.dtype)
    for e in range(tails.size):
        word = _random_word(np.uint64(e) ^ key)
        tail, head = x[tails[e]], x[heads[e]]
        first, second = x.dtype.type(0.0), x.dtype.type(0.0)
        for c in range(WIDTH):
            y = tail[c] - head[c]
            first += y * _sign(word, c)
            second += y * y
        linear[e] = roots[e] * first
        quadratic[e] = roots[e] * roots[e] * second
    return linear, quadratic


@njit(cache=True, nogil=True)
def column_products(x, y):
    """Return the inner products of the columns of two matrices."""
    products = np.zeros(WIDTH, np.float64)
    for v in range(x.shape[0]):
        for c in range(WIDTH):
            products[c] += x[v, c] * y[v, c]
    return products


@njit(cache=True, nogil=True)
def descend(step, direction, image, x, residual, inverse_degrees):
    """Move x along the direction, the residual along its image; return the new preconditioned norms."""
    norms = np.zeros(WIDTH, np.float64)
    for v in range(inverse_degrees.size):
        for c in range(WIDTH):
            x[v, c] += step[c] * direction[v, c]
            r = residual[v, c] - step[c] * image[v, c]
            residual[v, c] = r
            norms[c] += r * r * inverse_degrees[v]
    return norms


@njit(cache=True, nogil=True)
def next_direction(share, residual, inverse_degrees, direction):
    """Replace the direction by the preconditioned residual plus a share of the last direction."""
    for v in range(inverse_degrees.size):
        for c in range(WIDTH):
            direction[v, c] = residual[v, c] * inverse_degrees[v] + share[c] * direction[v, c]
