"""Minimum-degree ordering on the quotient graph, and where to stop eliminating.

Eliminating a vertex joins its neighbours pairwise. The quotient graph records that clique as one *element* instead of
its edges, so the graph never needs more room than it started with, and the fill of every pivot is known before any of
it is allocated. Degrees are the approximate external degrees of Amestoy, Davis and Duff (1996); vertices that have
become indistinguishable are merged into one supervariable and eliminated together as one pivot.

The sizes of all pivots give the cost of each possible cut, where a piece's core is handed to dense arithmetic. The
constants are seconds on one present-day core; only their ratios matter to the choice.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from corrvae.graphs.weights.progress import DONE, STOP

_LIVE, _ELEMENT, _DEAD = 0, 1, 2
_GROWTH = 4  # fill makes later pivots this much larger than the present one, at least, where elimination is hopeless

SECONDS_A_PIVOT = 4e-7
SECONDS_AN_ENTRY = 6e-9  # of a column: symbolic work, gathering, writing back
SECONDS_A_PAIR = 1.2e-9  # of a column's entries: star-mesh and back-substitution
SECONDS_A_CORE_ENTRY = 6e-9
SECONDS_A_CORE_CUBE = 3.3e-11
SMALLEST_CORE = 64
LARGEST_DEGREE = 12  # of a vertex eliminated before a sketch


class Ordering(NamedTuple):
    """The order in which pieces are eliminated.

    `order`: vertices in order of elimination within each piece, its unordered core last. `pivot_sizes`, `pivot_tails`:
    number of vertices of each pivot, a run of indistinguishable vertices, and the number of later vertices it is joined
    to, hubs left out. `piece_pivots`: first pivot of each piece, closed by the number of pivots. `piece_hubs`: number
    of hubs of each piece.
    """

    order: np.ndarray
    pivot_sizes: np.ndarray
    pivot_tails: np.ndarray
    piece_pivots: np.ndarray
    piece_hubs: np.ndarray


class Cuts(NamedTuple):
    """Where the elimination of each piece stops, and what that will cost.

    `n_eliminated`: pivots to eliminate of each piece; `core_sizes`: vertices left; `seconds`, `bytes`: predicted for
    each piece with its core. Pieces with a core are solved one after another, so the largest of them counts.
    """

    n_eliminated: np.ndarray
    core_sizes: np.ndarray
    seconds: np.ndarray
    bytes: np.ndarray


@njit(cache=True, nogil=True)
def _unlink(v, degree, head, after, before):
    """Take v out of its degree's list."""
    if before[v] >= 0:
        after[before[v]] = after[v]
    else:
        head[degree[v]] = after[v]
    if after[v] >= 0:
        before[after[v]] = before[v]


@njit(cache=True, nogil=True)
def _link(v, d, degree, head, after, before):
    """Put v at the front of the list of degree d."""
    degree[v] = d
    before[v] = -1
    after[v] = head[d]
    if head[d] >= 0:
        before[head[d]] = v
    head[d] = v


@njit(cache=True, nogil=True)
def _collect_garbage(first, last, pool, start, length, state, size):
    """Move the lists of live variables and elements to the front of the pool; return where the free room begins."""
    owners = np.empty(last - first, np.int64)
    n = 0
    for v in range(first, last):
        if (state[v] == _LIVE and size[v] > 0) or state[v] == _ELEMENT:
            owners[n] = v
            n += 1
    owners = owners[:n]
    owners = owners[np.argsort(start[owners])]
    top = 0
    for q in range(n):
        v = owners[q]
        s = start[v]
        for t in range(length[v]):
            pool[top + t] = pool[s + t]
        start[v] = top
        top += length[v]
    return top


@njit(cache=True, nogil=True)
def _same_lists(u, v, pool, start, length, n_elements, mark, tag):
    """Return whether u and v have the same elements and the same variables."""
    if length[u] != length[v] or n_elements[u] != n_elements[v]:
        return False
    for t in range(start[u], start[u] + length[u]):
        mark[pool[t]] = tag
    for t in range(start[v], start[v] + length[v]):  # noqa: SIM110
        if mark[pool[t]] != tag:
            return False
    return True


@njit(cache=True, nogil=True)
def minimum_degree(
    pointers, neighbors, piece_starts, hub_factor, stop_ratio, degree_limit, work_limit, core_limit, control
):
    """Order each piece by approximate minimum degree.

    Vertices of degree above `hub_factor` times the square root of their piece's size come last and unordered: they
    are in every clique anyway and would be scanned at every pivot. A piece's ordering stops, leaving a core, when the
    next pivot is joined to more than `degree_limit` others or `stop_ratio` of what is left, or when the sum of
    squared column counts passes, or clearly will pass, `work_limit` with more than `core_limit` vertices to go.
    """
    n = pointers.size - 1
    n_pieces = piece_starts.size - 1
    order = np.empty(n, np.int32)
    pivot_sizes = np.empty(n, np.int64)
    pivot_tails = np.empty(n, np.int64)
    piece_pivots = np.zeros(n_pieces + 1, np.int64)
    piece_hubs = np.zeros(n_pieces, np.int64)
    n_pivots = 0

    largest, longest = 0, 0
    for piece in range(n_pieces):
        first, last = piece_starts[piece], piece_starts[piece + 1]
        largest = max(largest, last - first)
        longest = max(longest, pointers[last] - pointers[first])
    pool = np.empty(2 * longest + largest + 16, np.int32)
    start = np.zeros(n, np.int64)
    length = np.zeros(n, np.int64)  # of the whole list: elements first, then variables
    n_elements = np.zeros(n, np.int64)
    size = np.ones(n, np.int64)  # of the supervariable; negative while in the pivot's clique; 0 once absorbed
    degree = np.zeros(n, np.int64)  # of a variable: external degree; of an element: weighted size
    state = np.zeros(n, np.int8)
    outside = np.zeros(n, np.int64)  # tag + weight of an element outside the pivot's clique
    mark = np.zeros(n, np.int64)
    after = np.full(n, -1, np.int32)
    before = np.full(n, -1, np.int32)
    member = np.full(n, -1, np.int32)  # next member of the same supervariable
    last_member = np.arange(n).astype(np.int32)
    head = np.full(largest + 1, -1, np.int32)
    bucket = np.full(largest + 1, -1, np.int32)  # by hash of the lists
    next_in_bucket = np.full(n, -1, np.int32)
    hashes = np.zeros(n, np.int64)
    tag, mark_tag = np.int64(1), np.int64(1)

    for piece in range(n_pieces):
        first, last = piece_starts[piece], piece_starts[piece + 1]
        n_piece = last - first
        piece_pivots[piece] = n_pivots
        hub_degree = max(64.0, hub_factor * np.sqrt(n_piece))
        position = first
        n_hubs = 0
        top = 0
        work = 0.0
        for v in range(first, last):
            if pointers[v + 1] - pointers[v] > hub_degree:
                state[v] = _DEAD
                size[v] = 0
                n_hubs += 1
                order[last - n_hubs] = v
        for v in range(first, last):
            if state[v] == _DEAD:
                continue
            start[v] = top
            for t in range(pointers[v], pointers[v + 1]):
                u = neighbors[t]
                if state[u] != _DEAD:
                    pool[top] = u
                    top += 1
            length[v] = top - start[v]
            _link(v, length[v], degree, head, after, before)
        remaining = n_piece - n_hubs
        lowest = 0

        while remaining > 0:
            while head[lowest] < 0:
                lowest += 1
            p = head[lowest]
            if control[STOP] or lowest > degree_limit or work > work_limit:
                break
            if remaining > core_limit and remaining * float(_GROWTH * lowest) ** 2 > work_limit:
                break
            if remaining >= 64 and lowest > stop_ratio * remaining:
                break
            _unlink(p, degree, head, after, before)

            # The pivot's clique: its variables and those of its elements, which it absorbs.
            needed = length[p] - n_elements[p]
            for t in range(start[p], start[p] + n_elements[p]):
                if state[pool[t]] == _ELEMENT:
                    needed += length[pool[t]]
            if top + needed > pool.size:
                top = _collect_garbage(first, last, pool, start, length, state, size)
            pivot_size = size[p]
            size[p] = -pivot_size
            clique = top
            clique_weight = np.int64(0)
            for t in range(start[p], start[p] + length[p]):
                e = pool[t]
                if t < start[p] + n_elements[p]:
                    if state[e] != _ELEMENT:
                        continue
                    a, b = start[e], start[e] + length[e]
                    state[e] = _DEAD
                else:
                    a, b = t, t + 1
                for s in range(a, b):
                    v = pool[s]
                    if size[v] > 0:
                        clique_weight += size[v]
                        size[v] = -size[v]
                        pool[top] = v
                        top += 1
                        _unlink(v, degree, head, after, before)
            state[p] = _ELEMENT
            start[p] = clique
            length[p] = top - clique

            # How much of every element that touches the clique lies outside it.
            tag += n_piece + 1
            for s in range(clique, top):
                v = pool[s]
                for t in range(start[v], start[v] + n_elements[v]):
                    e = pool[t]
                    if state[e] != _ELEMENT:
                        continue
                    if outside[e] < tag:
                        outside[e] = degree[e] + tag
                    outside[e] += size[v]  # negative: v is in the clique

            # Prune the members' lists, bound their degrees, and hash the lists.
            for s in range(clique, top):
                v = pool[s]
                beyond = np.int64(0)
                signature = np.int64(p)
                write = start[v]
                elements_end = start[v] + n_elements[v]
                for t in range(start[v], elements_end):
                    e = pool[t]
                    if state[e] != _ELEMENT:
                        continue
                    if outside[e] == tag:  # wholly inside the new element: absorbed
                        state[e] = _DEAD
                        continue
                    beyond += outside[e] - tag
                    signature += e
                    pool[write] = e
                    write += 1
                variables = write
                for t in range(elements_end, start[v] + length[v]):
                    u = pool[t]
                    if size[u] > 0:
                        beyond += size[u]
                        signature += u
                        pool[write] = u
                        write += 1
                if beyond == 0:  # joined to nothing else: eliminated with the pivot
                    pivot_size -= size[v]
                    clique_weight += size[v]
                    size[v] = 0
                    state[v] = _DEAD
                    member[last_member[p]] = v
                    last_member[p] = last_member[v]
                    continue
                # At least one entry left the list, so there is room for the new element at its front.
                pool[write] = pool[variables]
                pool[variables] = p
                n_elements[v] = variables - start[v] + 1
                length[v] = write - start[v] + 1
                degree[v] = min(degree[v], beyond)
                h = signature % n_piece
                hashes[v] = h
                next_in_bucket[v] = bucket[h]
                bucket[h] = v

            # Members with equal lists are indistinguishable from now on.
            for s in range(clique, top):
                if size[pool[s]] == 0:
                    continue
                u = bucket[hashes[pool[s]]]
                bucket[hashes[pool[s]]] = -1
                while u >= 0:
                    previous = u
                    v = next_in_bucket[u]
                    while v >= 0:
                        mark_tag += 1
                        if _same_lists(u, v, pool, start, length, n_elements, mark, mark_tag):
                            size[u] += size[v]
                            size[v] = 0
                            state[v] = _DEAD
                            member[last_member[u]] = v
                            last_member[u] = last_member[v]
                            next_in_bucket[previous] = next_in_bucket[v]
                        else:
                            previous = v
                        v = next_in_bucket[v]
                    u = next_in_bucket[u]

            # Back into the degree lists, with the clique counted in.
            remaining -= pivot_size
            write = clique
            for s in range(clique, top):
                v = pool[s]
                if size[v] == 0:
                    continue
                size[v] = -size[v]
                d = min(degree[v] + clique_weight - size[v], remaining - size[v])
                _link(v, max(d, 0), degree, head, after, before)
                lowest = min(lowest, degree[v])
                pool[write] = v
                write += 1
            top = write
            length[p] = top - clique
            degree[p] = clique_weight
            size[p] = 0
            if clique_weight == 0:
                state[p] = _DEAD

            pivot_sizes[n_pivots] = pivot_size
            pivot_tails[n_pivots] = clique_weight
            n_pivots += 1
            v = p
            while v >= 0:
                order[position] = v
                position += 1
                v = member[v]
            work += pivot_size * float(clique_weight + n_hubs + pivot_size) ** 2
            control[DONE] += pivot_size

        piece_hubs[piece] = n_hubs
        if remaining > 0:
            for v in range(first, last):
                if state[v] == _LIVE and size[v] > 0:
                    head[degree[v]] = -1
                    u = v
                    while u >= 0:
                        order[position] = u
                        position += 1
                        u = member[u]
    piece_pivots[n_pieces] = n_pivots
    return Ordering(order, pivot_sizes[:n_pivots], pivot_tails[:n_pivots], piece_pivots, piece_hubs)


@njit(cache=True, nogil=True)
def column_cost(pivot_size, tail):
    """Return seconds and bytes of a pivot of `pivot_size` vertices, all joined to `tail` later ones."""
    entries = 0.5 * pivot_size * (pivot_size - 1) + float(pivot_size) * tail
    pairs = 0.0
    for i in range(pivot_size):
        pairs += float(tail + i) ** 2
    front = float(tail + pivot_size)
    seconds = SECONDS_A_PIVOT + SECONDS_AN_ENTRY * entries + SECONDS_A_PAIR * (pairs + front * front)
    return seconds, 8.0 * entries + 4.0 * tail


@njit(cache=True, nogil=True)
def choose_cuts(piece_starts, ordering, budget):
    """Choose the fastest cut of every piece that fits in `budget` bytes; if none does, the one that needs least."""
    _, pivot_sizes, pivot_tails, piece_pivots, piece_hubs = ordering
    n_pieces = piece_starts.size - 1
    n_eliminated = np.zeros(n_pieces, np.int64)
    core_sizes = np.zeros(n_pieces, np.int64)
    seconds = np.zeros(n_pieces, np.float64)
    sizes = np.zeros(n_pieces, np.float64)
    for piece in range(n_pieces):
        first, last = piece_pivots[piece], piece_pivots[piece + 1]
        n = piece_starts[piece + 1] - piece_starts[piece]
        best, least = np.inf, np.inf
        spent, size, largest_front = 0.0, 0.0, 0.0
        eliminated = 0
        for pivot in range(first, last + 1):
            core = n - eliminated
            core_seconds = SECONDS_A_CORE_ENTRY * core * core + SECONDS_A_CORE_CUBE * float(core) ** 3
            needed = size + 8.0 * core * core + 8.0 * largest_front * largest_front
            if core == 0 or core >= SMALLEST_CORE or pivot == last:
                fits = needed <= budget
                if (fits and spent + core_seconds < best) or (not fits and best == np.inf and needed < least):
                    if fits:
                        best = spent + core_seconds
                    least = needed
                    n_eliminated[piece] = pivot - first
                    seconds[piece] = spent + core_seconds
                    sizes[piece] = needed
                    core_sizes[piece] = core
            if pivot < last:
                pivot_size = pivot_sizes[pivot]
                tail = min(pivot_tails[pivot] + piece_hubs[piece], core - pivot_size)
                cost, entries = column_cost(pivot_size, tail)
                spent += cost
                size += entries
                largest_front = max(largest_front, float(tail + pivot_size))
                eliminated += pivot_size
    return Cuts(n_eliminated, core_sizes, seconds, sizes)


def cut_at_degree(piece_starts, ordering, largest_degree):
    """Cut every piece before the first pivot that is joined to more than `largest_degree` others, hubs left out.

    That adds little fill, so neither seconds nor bytes are predicted.
    """
    begins, ends = ordering.piece_pivots[:-1], ordering.piece_pivots[1:]
    too_large = np.flatnonzero(ordering.pivot_tails + ordering.pivot_sizes - 1 > largest_degree)
    next_large = np.append(too_large, ends[-1])[np.searchsorted(too_large, begins)]
    stops = np.minimum(next_large, ends)
    n_before = np.concatenate([[0], np.cumsum(ordering.pivot_sizes)])
    core_sizes = np.diff(piece_starts) - (n_before[stops] - n_before[begins])
    return Cuts(stops - begins, core_sizes, np.zeros(begins.size), np.zeros(begins.size))
