"""Which pairs of vertices an elimination touches: supernodes and their tails.

Positions are in order of elimination. A *supernode* is a pivot's run of consecutive positions; its *tail* is the
sorted list of later positions that all of them are joined to when they are eliminated. Columns are stored one after
another: column j of a supernode that ends at `end` holds the pairs (j, j + 1), ..., (j, end - 1) and then (j, tail).
"""

from typing import NamedTuple

import numpy as np

from corrvae.compiling import kernel
from corrvae.monitor import STOP


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


@kernel()
def later_neighbors(order, pointers, neighbors, edge_of, n_vertices):
    """For each position of `order`, the later positions it is joined to and the edges that do so."""
    n = order.size
    position = np.empty(n_vertices, np.int32)
    n_entries = 0
    for j in range(n):
        position[order[j]] = j
        n_entries += pointers[order[j] + 1] - pointers[order[j]]
    later_pointers = np.zeros(n + 1, np.int64)
    rows = np.empty(n_entries // 2, np.int32)
    edges = np.empty(n_entries // 2, np.int64)
    top = 0
    for j in range(n):
        v = order[j]
        for t in range(pointers[v], pointers[v + 1]):
            i = position[neighbors[t]]
            if i > j:
                rows[top] = i
                edges[top] = edge_of[t]
                top += 1
        later_pointers[j + 1] = top
    return later_pointers, rows, edges


@kernel()
def grown(array, capacity):
    """A copy of an array with room for more."""
    bigger = np.empty(capacity, array.dtype)
    bigger[: array.size] = array
    return bigger


@kernel()
def supernode_tails(starts, ends, later_pointers, later_rows, n_positions, control):
    """Tails of the supernodes `starts[s]:ends[s]`, by merging the tails of each one's children.

    A supernode's parent is the supernode that holds its first tail entry, if that is eliminated too.

    Returns `tail_pointers`, `tails`, and `columns`, where each position's column begins (closed by the total).
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
        needed = later_pointers[ends[s]] - later_pointers[starts[s]]
        child = first_child[s]
        while child >= 0:
            needed += tail_pointers[child + 1] - tail_pointers[child]
            child = next_child[child]
        if top + needed > tails.size:
            tails = grown(tails, 2 * tails.size + needed)
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
