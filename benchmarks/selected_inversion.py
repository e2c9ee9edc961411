"""The usual exact way to all effective resistances: a sparse factor, then its inverse on its pattern (Takahashi)."""

import numba
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu


@numba.njit(cache=True)
def _invert_on_pattern(pointers, rows, values, diagonal):
    """Entries of (L D L')^-1 on the pattern of the unit lower factor L, column by column from the last."""
    n = diagonal.size
    inverse = np.zeros(values.size)
    own = np.zeros(n)
    slot = np.full(n, -1, np.int64)
    sums = np.zeros(n)
    for j in range(n - 1, -1, -1):
        begin, end = pointers[j] + 1, pointers[j + 1]  # the first entry is the diagonal
        for t in range(begin, end):
            slot[rows[t]] = t
            sums[rows[t]] = 0.0
        for t in range(begin, end):
            k, factor = rows[t], values[t]
            total = own[k] * factor
            for s in range(pointers[k] + 1, pointers[k + 1]):
                i = rows[s]
                if slot[i] >= 0:
                    total += inverse[s] * values[slot[i]]
                    sums[i] += inverse[s] * factor
            sums[k] += total
        remainder = 1.0 / diagonal[j]
        for t in range(begin, end):
            inverse[t] = -sums[rows[t]]
            remainder -= values[t] * inverse[t]
        own[j] = remainder
        for t in range(begin, end):
            slot[rows[t]] = -1
    return inverse, own


@numba.njit(cache=True)
def _read(pointers, rows, inverse, own, tails, heads, out):
    for e in range(tails.size):
        i, j = min(tails[e], heads[e]), max(tails[e], heads[e])
        if i < 0:
            out[e] = own[j]
            continue
        for t in range(pointers[i], pointers[i + 1]):
            if rows[t] == j:
                out[e] = own[i] + own[j] - 2.0 * inverse[t]
                break


def superlu_weights(edges: np.ndarray, n_vertices: int) -> np.ndarray:
    """Spanning weights through SuperLU's symmetric mode with minimum-degree ordering."""
    tails, heads = edges.T
    ones = np.ones(len(edges))
    adjacency = sp.coo_array((ones, (tails, heads)), shape=(n_vertices, n_vertices)).tocsr()
    adjacency += adjacency.T
    laplacian = sp.diags_array(adjacency.sum(axis=1)) - adjacency
    # Ground one vertex of each component.
    labels = connected_components(adjacency, directed=False)[1]
    grounded = np.unique(labels, return_index=True)[1]
    kept = np.delete(np.arange(n_vertices), grounded)
    place = np.full(n_vertices, -1)
    place[kept] = np.arange(kept.size)
    factor = splu(
        laplacian.tocsc()[:, kept][kept].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    lower = factor.L.tocsc()
    lower.sort_indices()
    inverse, own = _invert_on_pattern(lower.indptr, lower.indices, lower.data, factor.U.diagonal())
    position = np.append(factor.perm_c, -1)
    out = np.empty(len(edges))
    _read(lower.indptr, lower.indices, inverse, own, position[place[tails]], position[place[heads]], out)
    return out
