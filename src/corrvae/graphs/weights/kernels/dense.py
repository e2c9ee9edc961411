"""The dense core: from conductances to resistances, in place."""

import numpy as np
from numba import njit

from corrvae.graphs.weights.progress import DONE, STOP


@njit(cache=True, nogil=True)
def normalised_laplacian(core, scale):
    """Write D^-1/2 L D^-1/2 + u u' with u = D^1/2 1 / |D^1/2 1| to the lower triangle; `scale` receives D^-1/2.

    The shift moves the one zero eigenvalue to 1, between the others, which lie in (0, 2]; it cancels in every
    resistance. The conductances stay in the upper triangle, in case they are needed again.
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
def restore_conductances(core):
    """Undo `normalised_laplacian`: mirror the upper triangle."""
    for i in range(core.shape[0]):
        core[i, i] = 0.0
        for j in range(i):
            core[i, j] = core[j, i]


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


@njit(cache=True, nogil=True)
def star_mesh_resistances(core, control):
    """Turn conductances into resistances by star-mesh elimination: slow, and exact at any scaling; return all 1 / D."""
    k = core.shape[0]
    inverse_sums = np.empty(k, np.float64)
    c = np.empty(k, np.float64)
    r = np.empty(k, np.float64)
    for v in range(k - 1, -1, -1):
        if control[STOP]:
            return inverse_sums
        row = core[v]
        total = 0.0
        for a in range(v):
            total += row[a]
        inverse_sums[v] = 1.0 / total if total > 0.0 else 0.0
        for a in range(v):
            factor = row[a] * inverse_sums[v]
            if factor > 0.0:
                target = core[a]
                for b in range(v):
                    target[b] += factor * row[b]
                target[a] = 0.0
        control[DONE] += 1
    for v in range(k):
        if control[STOP]:
            return inverse_sums
        for a in range(v):
            c[a] = core[v, a] * inverse_sums[v]
            r[a] = 0.0
        for b in range(v):
            source = core[b]
            for a in range(v):
                r[a] += c[b] * source[a]
        half = 0.0
        for a in range(v):
            half += 0.5 * c[a] * r[a]
        for a in range(v):
            resistance = inverse_sums[v] + (r[a] - half)
            core[v, a] = resistance
            core[a, v] = resistance
        core[v, v] = 0.0
    return inverse_sums
