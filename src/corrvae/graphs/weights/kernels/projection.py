"""Random projections of a weighted core, solved by conjugate gradients, many columns at once.

With B the signed incidence matrix, W the conductances and L = B' W B, the columns x = L+ B' W^1/2 s of random signs s
embed the vertices so that squared distances, averaged over columns, are resistances (Johnson and Lindenstrauss). The
same signs read W^1/2 B x give a second estimate: P = W^1/2 B L+ B' W^1/2 is a projection, and the wanted weight is
its diagonal entry, which is s_e (P s)_e on average as well as (P s)_e^2.
"""

import numpy as np
from numba import njit

from corrvae.monitor import DONE, STOP

WIDTH = 32  # columns of one block: one bit of a random word each


@njit(nogil=True, cache=True, inline="always")
def _random_word(counter):
    """Hash a counter to 64 random bits (SplitMix64's finaliser)."""
    z = counter + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(nogil=True, cache=True)
def project(tails, heads, roots, key, out):
    """Write B' W^1/2 s to `out` (vertices, WIDTH); `roots` are the square roots of the conductances."""
    out[:] = 0.0
    for e in range(tails.size):
        word = _random_word(np.uint64(e) ^ key)
        i, j = tails[e], heads[e]
        for c in range(WIDTH):
            x = roots[e] if (word >> np.uint64(c)) & np.uint64(1) else -roots[e]
            out[i, c] += x
            out[j, c] -= x


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def read_signs_and_squares(tails, heads, roots, key, x):
    """Sums over the columns of s_e y_e and of y_e^2, with y = W^1/2 B x."""
    linear = np.empty(tails.size, np.float32)
    quadratic = np.empty(tails.size, np.float32)
    for e in range(tails.size):
        word = _random_word(np.uint64(e) ^ key)
        i, j = tails[e], heads[e]
        first, second = np.float32(0.0), np.float32(0.0)
        for c in range(WIDTH):
            y = roots[e] * (x[i, c] - x[j, c])
            first += y if (word >> np.uint64(c)) & np.uint64(1) else -y
            second += y * y
        linear[e] = first
        quadratic[e] = second
    return linear, quadratic


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _multiply(pointers, neighbors, values, degrees, x, y, products):
    """y = L x, and the inner products of the columns of x and y."""
    products[:] = 0.0
    total = np.empty(WIDTH, np.float32)
    for v in range(degrees.size):
        for c in range(WIDTH):
            total[c] = degrees[v] * x[v, c]
        for t in range(pointers[v], pointers[v + 1]):
            u = neighbors[t]
            for c in range(WIDTH):
                total[c] -= values[t] * x[u, c]
        for c in range(WIDTH):
            y[v, c] = total[c]
            products[c] += total[c] * x[v, c]


@njit(nogil=True, cache=True)
def conjugate_gradients(pointers, neighbors, values, degrees, residual, tolerance, max_iterations, control):
    """Solve L x = residual for all columns, preconditioned by the degrees; `residual` is overwritten.

    Stops when every column's preconditioned residual norm is below `tolerance` times its first.
    Returns x, the number of iterations, and whether it converged.
    """
    n = degrees.size
    x = np.zeros((n, WIDTH), np.float32)
    direction = np.empty((n, WIDTH), np.float32)
    image = np.empty((n, WIDTH), np.float32)
    norms = np.zeros(WIDTH, np.float64)
    products = np.zeros(WIDTH, np.float64)
    step = np.zeros(WIDTH, np.float32)
    for v in range(n):
        for c in range(WIDTH):
            direction[v, c] = residual[v, c] / degrees[v]
            norms[c] += residual[v, c] * direction[v, c]
    first_norms = norms.copy()
    for iteration in range(max_iterations):
        if control[STOP]:
            break
        _multiply(pointers, neighbors, values, degrees, direction, image, products)
        for c in range(WIDTH):
            step[c] = norms[c] / products[c] if products[c] > 0.0 else 0.0
        previous = norms.copy()
        norms[:] = 0.0
        for v in range(n):
            inverse = np.float32(1.0) / degrees[v]
            for c in range(WIDTH):
                x[v, c] += step[c] * direction[v, c]
                r = residual[v, c] - step[c] * image[v, c]
                residual[v, c] = r
                norms[c] += r * r * inverse
        control[DONE] += 1
        if np.all(norms <= tolerance * tolerance * first_norms):
            return x, iteration + 1, True
        for c in range(WIDTH):
            step[c] = norms[c] / previous[c] if previous[c] > 0.0 else 0.0
        for v in range(n):
            inverse = np.float32(1.0) / degrees[v]
            for c in range(WIDTH):
                direction[v, c] = inverse * residual[v, c] + step[c] * direction[v, c]
    return x, max_iterations, False


@njit(nogil=True, cache=True)
def exact_parts(structure, inverse_sums, out):
    """For each edge with an eliminated end, the part 1 / D of its resistance that owes nothing to the core."""
    for j in range(structure.first):
        for t in range(structure.later_pointers[j], structure.later_pointers[j + 1]):
            out[structure.later_edges[t]] = inverse_sums[j]
