"""The dense core: from conductances to resistances, in place."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def normalised_laplacian(core, scale):
    """Write D^-1/2 L D^-1/2 + u u' with u = D^1/2 1 / |D^1/2 1| to the lower triangle; `scale` receives D^-1/2.

    The shift moves the one zero eigenvalue to 1, between the others, which lie in (0, 2]; it cancels in every
    resistance.
    """
    k = core.shape[0]
    total = 0.0
    for i in range(k):
        degree = 0.0
        for j in range(k):
            degree += core[i, j]
        scale[i] = 1.0 / np.sqrt(degree)
        total += degree
    for i in range(k):
        for j in range(i):
            core[i, j] = 1.0 / (scale[i] * scale[j] * total) - core[i, j] * scale[i] * scale[j]
        core[i, i] = 1.0 + 1.0 / (scale[i] * scale[i] * total)


@njit(cache=True, nogil=True)
def resistances_from_inverse(core, scale):
    """Turn the inverse, given in the lower triangle, into the full matrix of resistances."""
    k = core.shape[0]
    own = np.empty(k, np.float64)
    for i in range(k):
        own[i] = core[i, i] * scale[i] * scale[i]
        core[i, i] = 0.0
    block = 64
    for i0 in range(0, k, block):
        for j0 in range(0, i0 + block, block):
            for i in range(i0, min(k, i0 + block)):
                for j in range(j0, min(i, j0 + block)):
                    resistance = own[i] + own[j] - 2.0 * core[i, j] * scale[i] * scale[j]
                    core[i, j] = resistance
                    core[j, i] = resistance
