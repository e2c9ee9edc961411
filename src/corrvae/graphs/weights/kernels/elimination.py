"""Star-mesh elimination of supernodes, and back-substitution in resistances.

Removing vertex v with conductances w_va and D = sum_a w_va adds w_va w_vb / D between each pair of its neighbours:
positive numbers only, so nothing is lost to cancellation and no vertex has to be grounded. Back-substitution goes
newest first: with c_a = w_va / D, r_a = sum_b c_b R_ab and s = 1/2 sum_a c_a r_a, the resistances are
R_va = 1/D + r_a - s, and only pairs of the filled graph are touched. The columns hold conductances after elimination
and resistances after back-substitution.

Positions are in order of elimination. A *supernode* is a pivot's run of consecutive positions; its *tail* is the
sorted list of later positions that all of them are joined to when they are eliminated. Columns are stored one after
another: column j of a supernode that ends at `end` holds the pairs (j, j + 1), ..., (j, end - 1) and then (j, tail).

Elimination is left-looking: a column is gathered from the earlier supernodes whose tail contains it. Each supernode
waits in the list (`waiting`, `next_waiting`) of the next position of its tail.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from corrvae.graphs.weights.progress import DONE, STOP


class Structure(NamedTuple):
    """The pattern of one elimination: everything that does not depend on the conductances.

    `starts`, `ends`: positions of each supernode; `tail_pointers`, `tails`: their tails; `columns`: where each
    position's column begins; `later_pointers`, `later_rows`, `later_edges`: the original edges, at their earlier end;
    `first`: the first position of the core (the number of positions when nothing is left).
    """

    starts: np.ndarray
    ends: np.ndarray
    tail_pointers: np.ndarray
    tails: np.ndarray
    columns: np.ndarray
    later_pointers: np.ndarray
    later_rows: np.ndarray
    later_edges: np.ndarray
    first: int

    @property
    def core_size(self) -> int:
        """Number of positions that are not eliminated."""
        return self.columns.size - 1 - self.first


class Elimination(NamedTuple):
    """Columns of the eliminated positions, and what is still to reach the core.

    `values`: the conductances of each column at the moment its vertex is eliminated; `inverse_sums`: 1 / D of each
    eliminated position; `waiting`, `next_waiting`, `at`: lists of the supernodes that still contribute to the core.
    """

    values: np.ndarray
    inverse_sums: np.ndarray
    waiting: np.ndarray
    next_waiting: np.ndarray
    at: np.ndarray


@njit(cache=True, nogil=True)
def grow(array, capacity):
    """Return a copy of an array with room for more."""
    bigger = np.empty(capacity, array.dtype)
    bigger[: array.size] = array
    return bigger


@njit(cache=True, nogil=True)
def supernode_tails(starts, ends, later_pointers, later_rows, n_positions, control):
    """Return the tails of the supernodes `starts[s]:ends[s]`, and where each position's column begins.

    Tails are merged from those of the children. A supernode's parent is the supernode that holds its first tail entry,
    if that is eliminated too.
    """
    n_supernodes = starts.size
    supernode_of = np.full(n_positions, -1, np.int32)
    for s in range(n_supernodes):
        for j in range(starts[s], ends[s]):
            supernode_of[j] = s
    tail_pointers = np.zeros(n_supernodes + 1, np.int64)
    tails = np.empty(1024 + 2 * later_rows.size, np.int32)
    first_child = np.full(n_supernodes, -1, np.int32)
    next_child = np.full(n_supernodes, -1, np.int32)
    seen = np.full(n_positions, -1, np.int32)
    top = 0
    for s in range(n_supernodes):
        if control[STOP]:
            break
        begin = top
        if top + n_positions > tails.size:
            tails = grow(tails, 2 * tails.size + n_positions)
        for j in range(starts[s], ends[s]):
            for t in range(later_pointers[j], later_pointers[j + 1]):
                row = later_rows[t]
                if row >= ends[s] and seen[row] != s:
                    seen[row] = s
                    tails[top] = row
                    top += 1
        child = first_child[s]
        while child >= 0:
            for t in range(tail_pointers[child], tail_pointers[child + 1]):
                row = tails[t]
                if row >= ends[s] and seen[row] != s:
                    seen[row] = s
                    tails[top] = row
                    top += 1
            child = next_child[child]
        tails[begin:top].sort()
        tail_pointers[s + 1] = top
        if top > begin:
            parent = supernode_of[tails[begin]]
            if parent >= 0:
                next_child[s] = first_child[parent]
                first_child[parent] = s
    columns = np.zeros(n_positions + 1, np.int64)
    total = 0
    for s in range(n_supernodes):
        n_tail = tail_pointers[s + 1] - tail_pointers[s]
        for j in range(starts[s], ends[s]):
            columns[j] = total
            total += ends[s] - 1 - j + n_tail
    columns[ends[n_supernodes - 1] if n_supernodes else 0 :] = total  # the core has no columns
    return tail_pointers, tails[:top].copy(), columns


@njit(cache=True, nogil=True)
def _gather(j, structure, elimination, sums, target, shift):
    """Add the contributions of earlier supernodes to column j to `target[row - shift]`; advance each of them."""
    starts, ends, columns = structure.starts, structure.ends, structure.columns
    tail_pointers, tails = structure.tail_pointers, structure.tails
    values, inverse_sums, waiting, next_waiting, at = elimination
    s = waiting[j]
    while s >= 0:
        following = next_waiting[s]
        q = at[s]
        n_tail = tail_pointers[s + 1] - tail_pointers[s]
        rest = n_tail - q - 1
        rows = tails[tail_pointers[s] + q + 1 : tail_pointers[s + 1]]
        for t in range(rest):
            sums[t] = 0.0
        for i in range(starts[s], ends[s]):
            begin = columns[i] + ends[s] - 1 - i + q
            column = values[begin : begin + rest + 1]
            factor = column[0] * inverse_sums[i]
            for t in range(rest):
                sums[t] += factor * column[t + 1]
        for t in range(rest):
            target[rows[t] - shift] += sums[t]
        at[s] = q + 1
        if rest > 0:
            next_waiting[s] = waiting[rows[0]]
            waiting[rows[0]] = s
        s = following


@njit(cache=True, nogil=True)
def eliminate(structure, conductances, control):
    """Eliminate the supernodes in order; return an `Elimination`."""
    starts, ends, columns = structure.starts, structure.ends, structure.columns
    tail_pointers, tails = structure.tail_pointers, structure.tails
    later_pointers, later_rows, later_edges = structure.later_pointers, structure.later_rows, structure.later_edges
    n_positions = columns.size - 1
    n_supernodes = starts.size
    values = np.zeros(columns[n_positions], np.float64)
    inverse_sums = np.zeros(n_positions, np.float64)
    waiting = np.full(n_positions, -1, np.int32)
    next_waiting = np.full(n_supernodes, -1, np.int32)
    at = np.zeros(n_supernodes, np.int64)
    elimination = Elimination(values, inverse_sums, waiting, next_waiting, at)
    work = np.zeros(n_positions, np.float64)
    sums = np.empty(n_positions, np.float64)
    for s in range(n_supernodes):
        if control[STOP]:
            break
        tail = tails[tail_pointers[s] : tail_pointers[s + 1]]
        for j in range(starts[s], ends[s]):
            for t in range(later_pointers[j], later_pointers[j + 1]):
                work[later_rows[t]] += conductances[later_edges[t]]
            _gather(j, structure, elimination, sums, work, 0)
            inside = ends[s] - 1 - j
            column = values[columns[j] : columns[j + 1]]
            for t in range(inside):
                column[t] = work[j + 1 + t]
                work[j + 1 + t] = 0.0
            for t in range(tail.size):
                column[inside + t] = work[tail[t]]
                work[tail[t]] = 0.0
            for i in range(starts[s], j):
                earlier = values[columns[i] + j - i - 1 : columns[i + 1]]
                factor = earlier[0] * inverse_sums[i]
                for t in range(column.size):
                    column[t] += factor * earlier[t + 1]
            total = 0.0
            for t in range(column.size):
                total += column[t]
            inverse_sums[j] = 1.0 / total if total > 0.0 else 0.0
        if tail.size > 0:
            next_waiting[s] = waiting[tail[0]]
            waiting[tail[0]] = s
        control[DONE] += ends[s] - starts[s]
    return elimination


@njit(cache=True, nogil=True)
def dense_core(structure, elimination, conductances, control):
    """Return the conductances left between core positions as a full symmetric matrix with a zero diagonal."""
    first, n_positions = structure.first, structure.columns.size - 1
    later_pointers, later_rows, later_edges = structure.later_pointers, structure.later_rows, structure.later_edges
    k = n_positions - first
    core = np.zeros((k, k), np.float64)
    sums = np.empty(k, np.float64)
    for j in range(first, n_positions):
        if control[STOP]:
            break
        row = core[j - first]
        for t in range(later_pointers[j], later_pointers[j + 1]):
            row[later_rows[t] - first] += conductances[later_edges[t]]
        _gather(j, structure, elimination, sums, row, first)
    block = 64
    for i0 in range(0, k, block):
        for j0 in range(i0, k, block):
            for i in range(i0, min(k, i0 + block)):
                for j in range(max(i + 1, j0), min(k, j0 + block)):
                    core[j, i] = core[i, j]
    return core


@njit(cache=True, nogil=True)
def sparse_core(structure, elimination, conductances, control):
    """Return the conductances left between core positions as lists: tails, heads (both from 0), conductances."""
    first, n_positions = structure.first, structure.columns.size - 1
    later_pointers, later_rows, later_edges = structure.later_pointers, structure.later_rows, structure.later_edges
    k = n_positions - first
    tail_pointers, tails = structure.tail_pointers, structure.tails
    waiting, next_waiting, at = elimination.waiting, elimination.next_waiting, elimination.at
    work = np.zeros(k, np.float64)
    sums = np.empty(k, np.float64)
    seen = np.full(k, -1, np.int32)
    capacity = 1024 + later_rows.size
    core_tails = np.empty(capacity, np.int32)
    core_heads = np.empty(capacity, np.int32)
    core_conductances = np.empty(capacity, np.float64)
    top = 0
    for j in range(first, n_positions):
        if control[STOP]:
            break
        begin = top
        if top + k > capacity:
            capacity = 2 * capacity + k
            core_tails = grow(core_tails, capacity)
            core_heads = grow(core_heads, capacity)
            core_conductances = grow(core_conductances, capacity)
        for t in range(later_pointers[j], later_pointers[j + 1]):
            i = later_rows[t] - first
            work[i] += conductances[later_edges[t]]
            if seen[i] != j:
                seen[i] = j
                core_heads[top] = i
                top += 1
        s = waiting[j]
        while s >= 0:
            for t in range(tail_pointers[s] + at[s] + 1, tail_pointers[s + 1]):
                i = tails[t] - first
                if seen[i] != j:
                    seen[i] = j
                    core_heads[top] = i
                    top += 1
            s = next_waiting[s]
        _gather(j, structure, elimination, sums, work, first)
        core_heads[begin:top].sort()
        for t in range(begin, top):
            core_tails[t] = j - first
            core_conductances[t] = work[core_heads[t]]
            work[core_heads[t]] = 0.0
    return core_tails[:top].copy(), core_heads[:top].copy(), core_conductances[:top].copy()


@njit(cache=True, nogil=True)
def back_substitute(structure, elimination, resistances, embedding, control):
    """Turn the columns from conductances into resistances, newest supernode first.

    Pairs inside the core have the resistances of a matrix, or, when that is empty, the squared distances of the rows of
    `embedding`.
    """
    first, starts, ends, columns = structure.first, structure.starts, structure.ends, structure.columns
    tail_pointers, tails = structure.tail_pointers, structure.tails
    values, inverse_sums = elimination.values, elimination.inverse_sums
    n_positions = columns.size - 1
    largest = 0
    for s in range(starts.size):
        largest = max(largest, ends[s] - starts[s] + tail_pointers[s + 1] - tail_pointers[s])
    # resistances among the tail, then of the supernode, last vertex first
    front = np.zeros((largest, largest), np.float64)
    c = np.empty(largest, np.float64)
    r = np.empty(largest, np.float64)
    slot = np.full(n_positions, -1, np.int32)
    supernode_of = np.full(n_positions, -1, np.int32)
    for s in range(starts.size):
        for j in range(starts[s], ends[s]):
            supernode_of[j] = s
    dense = resistances.size > 0
    for s in range(starts.size - 1, -1, -1):
        if control[STOP]:
            break
        tail = tails[tail_pointers[s] : tail_pointers[s + 1]]
        n_tail = tail.size
        for t in range(n_tail):
            slot[tail[t]] = t
        for t in range(n_tail):
            a = tail[t]
            front[t, t] = 0.0
            if a < first:
                parent = supernode_of[a]
                inside = ends[parent] - 1 - a
                column = values[columns[a] : columns[a + 1]]
                for i in range(inside):
                    if slot[a + 1 + i] >= 0:
                        front[t, slot[a + 1 + i]] = column[i]
                        front[slot[a + 1 + i], t] = column[i]
                parent_tail = tails[tail_pointers[parent] : tail_pointers[parent + 1]]
                for i in range(parent_tail.size):
                    if slot[parent_tail[i]] >= 0:
                        front[t, slot[parent_tail[i]]] = column[inside + i]
                        front[slot[parent_tail[i]], t] = column[inside + i]
            elif dense:
                row = resistances[a - first]
                for i in range(t + 1, n_tail):
                    front[t, i] = row[tail[i] - first]
                    front[i, t] = front[t, i]
            else:
                for i in range(t + 1, n_tail):
                    front[t, i] = _squared_distance(embedding[a - first], embedding[tail[i] - first])
                    front[i, t] = front[t, i]
        for t in range(n_tail):
            slot[tail[t]] = -1

        m = n_tail
        for j in range(ends[s] - 1, starts[s] - 1, -1):
            inside = ends[s] - 1 - j
            column = values[columns[j] : columns[j + 1]]
            for t in range(n_tail):
                c[t] = column[inside + t] * inverse_sums[j]
                r[t] = 0.0
            for t in range(inside):  # position j + 1 + t sits in slot n_tail + inside - 1 - t
                c[n_tail + inside - 1 - t] = column[t] * inverse_sums[j]
                r[n_tail + inside - 1 - t] = 0.0
            for b in range(m):
                row = front[b]
                factor = c[b]
                for a in range(m):
                    r[a] += factor * row[a]
            half = 0.0
            for a in range(m):
                half += c[a] * r[a]
            half *= 0.5
            for a in range(m):
                resistance = inverse_sums[j] + (r[a] - half)
                front[m, a] = resistance
                front[a, m] = resistance
            front[m, m] = 0.0
            for t in range(n_tail):
                column[inside + t] = front[m, t]
            for t in range(inside):
                column[t] = front[m, n_tail + inside - 1 - t]
            m += 1
        control[DONE] += ends[s] - starts[s]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # lets the sum run in vector registers
def _squared_distance(x, y):
    total = x.dtype.type(0.0)
    for c in range(x.size):
        d = x[c] - y[c]
        total += d * d
    return total


@njit(cache=True, nogil=True)
def read_resistances(structure, values, resistances, out):
    """Write the resistance across each original edge to `out`; edges inside a sparse core are left alone."""
    first, starts, ends, columns = structure.first, structure.starts, structure.ends, structure.columns
    tail_pointers, tails = structure.tail_pointers, structure.tails
    later_pointers, later_rows, later_edges = structure.later_pointers, structure.later_rows, structure.later_edges
    slot = np.full(columns.size - 1, -1, np.int64)
    for s in range(starts.size):
        tail = tails[tail_pointers[s] : tail_pointers[s + 1]]
        for t in range(tail.size):
            slot[tail[t]] = t
        for j in range(starts[s], ends[s]):
            inside = ends[s] - 1 - j
            for t in range(later_pointers[j], later_pointers[j + 1]):
                row = later_rows[t]
                k = row - j - 1 if row < ends[s] else inside + slot[row]
                out[later_edges[t]] = values[columns[j] + k]
    if resistances.size > 0:
        for j in range(first, columns.size - 1):
            for t in range(later_pointers[j], later_pointers[j + 1]):
                out[later_edges[t]] = resistances[j - first, later_rows[t] - first]
