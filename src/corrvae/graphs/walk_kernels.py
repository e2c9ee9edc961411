"""Sums over the short paths from vertices, along the graph and in memory that grows with its vertices alone."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def expand(vertices, listed, begins, neighbors, around, directions, n_near, most, stage):
    """Sum paths of two to four steps from each vertex; return listed vertices and the best of the others reached.

    The edge to the vertex listed first, if there is one, is not followed and not counted. Of the others listed, those
    that are linked to the vertex or listed before are left out. `around` is the sum of 1 / degree over each vertex's
    neighbours of at most `most` neighbours: paths that come to their end, turn, and come to it again are taken off, so
    that either end of a pair finds the same paths.
    """
    n = len(begins) - 1
    n_listed = listed.shape[1]
    width = n_listed + n_near
    found = np.full((len(vertices), width), -1, np.int64)
    walks = np.zeros((len(vertices), width, 5))
    sums = np.zeros((n, 5))
    is_taken = np.zeros(n, np.bool_)  # a neighbour, the vertex itself, or listed
    is_reached = np.zeros(n, np.bool_)
    reached = np.empty(n, np.int64)
    scores, order_of = np.empty(n), np.empty(n, np.int64)
    for row in range(len(vertices)):
        i, count = vertices[row], 0
        gone = listed[row, 0] if n_listed > 0 else -1
        is_taken[i] = True
        is_reached[i] = True
        is_edge = False
        for p in range(begins[i], begins[i + 1]):
            is_taken[neighbors[p]] = True
            is_edge |= neighbors[p] == gone
        for p in range(begins[i], begins[i + 1]):
            a = neighbors[p]
            degree = begins[a + 1] - begins[a]
            if a == gone or degree > most:
                continue
            for r in range(begins[a], begins[a + 1]):
                b = neighbors[r]
                if b == i:
                    continue
                if not is_reached[b]:
                    is_reached[b] = True
                    reached[count] = b
                    count += 1
                sums[b, 0] += 1.0
                sums[b, 1] += 1.0 / np.log(degree)
                sums[b, 2] += 1.0 / degree
        for step in range(3, 5):
            source = step - 1
            before = count
            for k in range(before):
                b = reached[k]
                degree = begins[b + 1] - begins[b]
                if sums[b, source] == 0.0 or degree > most:
                    continue
                passed = sums[b, source] / (degree - (is_edge and b == gone))
                for r in range(begins[b], begins[b + 1]):
                    j = neighbors[r]
                    if j == i:
                        continue
                    if not is_reached[j]:
                        is_reached[j] = True
                        reached[count] = j
                        count += 1
                    sums[j, step] += passed
        for k in range(n_listed):
            j = listed[row, k]
            if j >= 0 and (k == 0 or not is_taken[j]):
                found[row, k] = j
                is_taken[j] = True
        n_open = 0
        for k in range(count if n_near > 0 else 0):
            j = reached[k]
            if not is_taken[j]:
                alike = 0.0
                for d in range(directions.shape[1]):
                    alike += directions[i, d] * directions[j, d]
                paths = stage[0] * sums[j, 2] + stage[1] * sums[j, 3] + stage[2] * sums[j, 4]
                scores[n_open] = -paths * (1.0 + max(alike, 0.0))
                order_of[n_open] = j
                n_open += 1
        best = np.argsort(scores[:n_open])
        for k in range(min(n_near, n_open)):
            found[row, n_listed + k] = order_of[best[k]]
        for k in range(width):
            j = found[row, k]
            if j < 0:
                continue
            walks[row, k] = sums[j]
            is_taken[j] = False
            turned, degree = around[j], begins[j + 1] - begins[j]
            if degree > most or sums[j, 2] == 0.0:
                continue
            if is_edge and j == gone:
                own = begins[i + 1] - begins[i]
                turned -= 1.0 / own if own <= most else 0.0
                degree -= 1
            walks[row, k, 4] = max(0.0, walks[row, k, 4] - walks[row, k, 2] / degree * turned)
        for k in range(count):
            sums[reached[k]] = 0.0
            is_reached[reached[k]] = False
        is_reached[i] = is_taken[i] = False
        for p in range(begins[i], begins[i + 1]):
            is_taken[neighbors[p]] = False
    return found, walks


@njit(cache=True, nogil=True)
def count_triangles(begins, later):
    """Count the triangles at each vertex, from the neighbours of each that come later in some order of the vertices."""
    n = len(begins) - 1
    counts, seen_from = np.zeros(n, np.int64), np.full(n, -1)
    for i in range(n):
        mine = later[begins[i] : begins[i + 1]]
        for j in mine:
            seen_from[j] = i
        for a in mine:
            for j in later[begins[a] : begins[a + 1]]:
                if seen_from[j] == i:
                    counts[i] += 1
                    counts[a] += 1
                    counts[j] += 1
    return counts
