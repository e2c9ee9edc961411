"""Star-mesh elimination of the supernodes, and the way back in resistances.

Removing vertex v with conductances w_va and D = sum_a w_va adds w_va w_vb / D between each pair of its neighbours:
positive numbers only, so nothing is lost to cancellation and no vertex has to be grounded. On the way back, newest
first, with c_a = w_va / D, r_a = sum_b c_b R_ab and s = 1/2 sum_a c_a r_a, the resistances are R_va = 1/D + r_a - s,
and only pairs of the filled graph are touched. The columns hold conductances on the way in and resistances on the way
back.

The way in looks left: a column is gathered from the earlier supernodes whose tail contains it. Each supernode waits
in the list (`waiting`, `next_waiting`) of the next position of its tail.
"""

from typing import NamedTuple

import numpy as np

from corrvae.compiling import kernel
from corrvae.graphs.weights.kernels.symbolic import grown
from corrvae.monitor import DONE, STOP


class Elimination(NamedTuple):
    """Columns of the eliminated positions, and what is still to reach the core."""

    values: np.ndarray
    inverse_sums: np.ndarray
    waiting: np.ndarray
    next_waiting: np.ndarray
    at: np.ndarray


@kernel()
def _gather(j, structure, elimination, sums, target, shift):
    """Add what earlier supernodes give column j to `target[row - shift]`; move each on to its next position."""
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
        if ends[s] - starts[s] == 1:
            i = starts[s]
            column = values[columns[i] + q : columns[i] + n_tail]
            factor = column[0] * inverse_sums[i]
            for t in range(rest):
                target[rows[t] - shift] += factor * column[t + 1]
        else:
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


@kernel()
def eliminate(structure, conductances, control):
    """Eliminate the supernodes in order.

    Returns an `Elimination`: `values`, the conductances of each column at the moment its vertex is eliminated;
    `inverse_sums`, 1 / D of each eliminated position; and the lists of the supernodes that still contribute to the
    core.
    """
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


@kernel()
def dense_core(structure, elimination, conductances, control):
    """Conductances left between the positions from `first` on, as a full symmetric matrix with a zero diagonal."""
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


@kernel()
def sparse_core(structure, elimination, conductances, control):
    """Conductances left between the positions from `first` on, as lists: tails, heads (both from 0), conductances."""
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
        needed = later_pointers[j + 1] - later_pointers[j]
        s = waiting[j]
        while s >= 0:
            needed += tail_pointers[s + 1] - tail_pointers[s]
            s = next_waiting[s]
        if top + needed > capacity:
            capacity = 2 * capacity + needed
            core_tails = grown(core_tails, capacity)
            core_heads = grown(core_heads, capacity)
            core_conductances = grown(core_conductances, capacity)
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


@kernel()
def back_substitute(structure, elimination, resistances, embedding, control):
    """Turn the columns from conductances into resistances, newest supernode first.

    Pairs inside the core have the resistances given by the matrix `resistances`, or, when that is empty, the squared
    distances of the rows of `embedding`.
    """
    first, starts, ends, columns = structure.first, structure.starts, structure.ends, structure.columns
    tail_pointers, tails = structure.tail_pointers, structure.tails
    values, inverse_sums = elimination.values, elimination.inverse_sums
    n_positions = columns.size - 1
    largest = 0
    for s in range(starts.size):
        largest = max(largest, ends[s] - starts[s] + tail_pointers[s + 1] - tail_pointers[s])
    front = np.zeros(
        (largest, largest), np.float64
    )  # resistances among the tail, then of the supernode, last vertex first
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


@kernel(fastmath={"reassoc", "contract"})  # lets the sum run in vector registers
def _squared_distance(x, y):
    total = x.dtype.type(0.0)
    for c in range(x.size):
        d = x[c] - y[c]
        total += d * d
    return total


@kernel()
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
