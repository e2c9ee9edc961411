"""Random spanning forests by Wilson's algorithm, and the estimate of every weight from each.

Random walks are run until they meet the forest built so far; their loops are erased as they go. One forest shows of an
edge only whether it is there. Given the forest without one vertex v, though, v joins each of the remaining trees it
touches by one edge drawn in proportion to conductance: that conditional probability, averaged over both ends, has the
same mean and a much smaller variance (Rao and Blackwell), and still sums to n - components.
"""

import numpy as np
from numba import njit

from corrvae.graphs.weights.progress import DONE, STOP


@njit(cache=True, nogil=True, inline="always")
def _next_word(state):
    """Advance a xorshift generator of 64 bits."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@njit(cache=True, nogil=True)
def alias_tables(pointers, values):
    """Return Walker's alias tables: a neighbour is drawn in proportion to conductance by one random word."""
    threshold = np.ones(values.size, np.float64)
    alias = np.zeros(values.size, np.int64)
    small = np.empty(values.size, np.int64)
    large = np.empty(values.size, np.int64)
    for v in range(pointers.size - 1):
        begin, end = pointers[v], pointers[v + 1]
        total = 0.0
        for t in range(begin, end):
            total += values[t]
        n_small, n_large = 0, 0
        for t in range(begin, end):
            alias[t] = t
            threshold[t] = values[t] / total * (end - begin)
            if threshold[t] < 1.0:
                small[n_small] = t
                n_small += 1
            else:
                large[n_large] = t
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            low, high = small[n_small], large[n_large - 1]
            alias[low] = high
            threshold[high] -= 1.0 - threshold[low]
            if threshold[high] < 1.0:
                n_large -= 1
                small[n_small] = high
                n_small += 1
        while n_small > 0:  # left over by rounding alone
            n_small -= 1
            threshold[small[n_small]] = 1.0
    return threshold, alias


@njit(cache=True, nogil=True)
def sample_forest(pieces, threshold, alias, order, state, parent_entry, topological, stamp, mark, control):
    """Draw one forest.

    `parent_entry[v]` receives the entry of the adjacency lists that leads from v towards its root (-1 for a root);
    `topological` the vertices, parents first. `stamp[v] == mark` marks the vertices of this forest. Return the steps
    walked, or -1 when asked to stop.
    """
    pointers, neighbors, piece_starts = pieces.pointers, pieces.neighbors, pieces.starts
    weighted = threshold.size > 0
    scale = 1.0 / 4294967296.0
    top = 0
    steps = 0
    piece = 0
    for q in range(order.size):
        start = order[q]
        if q == piece_starts[piece]:
            piece += 1
            stamp[start] = mark
            parent_entry[start] = -1
            topological[top] = start
            top += 1
            continue
        v = start
        while stamp[v] != mark:
            word = _next_word(state)
            degree = np.uint64(pointers[v + 1] - pointers[v])
            t = pointers[v] + np.int64(((word >> np.uint64(32)) * degree) >> np.uint64(32))
            if weighted and np.float64(word & np.uint64(0xFFFFFFFF)) * scale >= threshold[t]:
                t = alias[t]
            parent_entry[v] = t
            v = neighbors[t]
            steps += 1
            if steps & 0xFFFFF == 0 and control[STOP]:
                return -1
        begin = top
        v = start
        while stamp[v] != mark:
            stamp[v] = mark
            topological[top] = v
            top += 1
            v = neighbors[parent_entry[v]]
        topological[begin:top] = topological[begin:top][::-1].copy()
    return steps


@njit(cache=True, nogil=True)
def conditional_probabilities(pieces, values, parent_entry, topological, scratch, out):
    """Add to `out` the probability of each edge given the forest without one of its ends, averaged over both ends.

    `scratch` is an integer array of shape (6, n + 1).
    """
    pointers, neighbors, edge_of = pieces.pointers, pieces.neighbors, pieces.edge_of
    n = pointers.size - 1
    size, entered, cursor, child_start, child_fill, children = scratch
    for v in range(n):
        size[v] = 1
        child_fill[v] = 0
    for q in range(n - 1, -1, -1):
        v = topological[q]
        if parent_entry[v] >= 0:
            parent = neighbors[parent_entry[v]]
            size[parent] += size[v]
            child_fill[parent] += 1
    child_start[0] = 0
    for v in range(n):
        child_start[v + 1] = child_start[v] + child_fill[v]
        child_fill[v] = child_start[v]
    # Number the vertices so that a subtree is an interval: [entered, entered + size).
    base = 0
    for q in range(n):
        v = topological[q]
        if parent_entry[v] < 0:
            entered[v] = base
            base += size[v]
        else:
            parent = neighbors[parent_entry[v]]
            entered[v] = cursor[parent]
            cursor[parent] += size[v]
            children[child_fill[parent]] = entered[v]
            child_fill[parent] += 1
        cursor[v] = entered[v] + 1
    longest = 0
    for v in range(n):
        longest = max(longest, pointers[v + 1] - pointers[v])
    tree = np.empty(longest, np.int64)
    total = np.zeros(longest + 1, np.float64)
    for v in range(n):
        begin, end = pointers[v], pointers[v + 1]
        first_child, n_children = child_start[v], child_start[v + 1] - child_start[v]
        total[: n_children + 1] = 0.0
        for t in range(begin, end):
            at = entered[neighbors[t]]
            which = 0  # the tree that holds the root
            if entered[v] < at < entered[v] + size[v]:
                low, high = 0, n_children - 1
                while low < high:
                    middle = (low + high + 1) >> 1
                    if children[first_child + middle] <= at:
                        low = middle
                    else:
                        high = middle - 1
                which = low + 1
            tree[t - begin] = which
            total[which] += values[t]
        for t in range(begin, end):
            out[edge_of[t]] += 0.5 * values[t] / total[tree[t - begin]]


@njit(cache=True, nogil=True)
def accumulate_forests(pieces, values, threshold, alias, order, keys, out, control):
    """Add the conditional edge probabilities of one forest for each key to `out`."""
    n = pieces.pointers.size - 1
    parent_entry = np.empty(n, np.int64)
    topological = np.empty(n, np.int32)
    stamp = np.full(n, -1, np.int64)
    scratch = np.empty((6, n + 1), np.int32)
    state = np.empty(1, np.uint64)
    for q in range(keys.size):
        state[0] = keys[q]
        steps = sample_forest(pieces, threshold, alias, order, state, parent_entry, topological, stamp, q, control)
        if steps < 0 or control[STOP]:
            return
        conditional_probabilities(pieces, values, parent_entry, topological, scratch, out)
        control[DONE] += 1
