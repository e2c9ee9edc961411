"""Adjacency lists, bridges, breadth-first search and blocks: a graph before anything is eliminated."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Pieces(NamedTuple):
    """The graph without its bridges, relabelled so that each connected piece is a run of consecutive vertices.

    `is_bridge`: of each edge of the graph; `kept`: the edges that are not bridges; `pointers`, `neighbors`, `edge_of`:
    adjacency lists of the relabelled vertices, with the graph's edges; `starts`: the first vertex of each piece, closed
    by the number of vertices.
    """

    is_bridge: np.ndarray
    kept: np.ndarray
    pointers: np.ndarray
    neighbors: np.ndarray
    edge_of: np.ndarray
    starts: np.ndarray

    @property
    def n_vertices(self) -> int:
        """Vertices that have an edge left."""
        return int(self.starts[-1])


@njit(cache=True, nogil=True)
def adjacency_lists(n_vertices, tails, heads):
    """Return the adjacency lists of an undirected graph: `pointers` (n + 1), `neighbors` (2 m), `edge_of` (2 m)."""
    n_edges = tails.size
    pointers = np.zeros(n_vertices + 1, np.int64)
    for e in range(n_edges):
        pointers[tails[e] + 1] += 1
        pointers[heads[e] + 1] += 1
    for v in range(n_vertices):
        pointers[v + 1] += pointers[v]
    fill = pointers[:-1].copy()
    neighbors = np.empty(2 * n_edges, np.int32)
    edge_of = np.empty(2 * n_edges, np.int64)
    for e in range(n_edges):
        i, j = tails[e], heads[e]
        neighbors[fill[i]] = j
        edge_of[fill[i]] = e
        fill[i] += 1
        neighbors[fill[j]] = i
        edge_of[fill[j]] = e
        fill[j] += 1
    return pointers, neighbors, edge_of


@njit(cache=True, nogil=True)
def find_bridges(n_vertices, pointers, neighbors, edge_of):
    """Mark the edges whose removal disconnects their component (depth-first search, low points)."""
    is_bridge = np.zeros(neighbors.size // 2, np.bool_)
    number = np.zeros(n_vertices, np.int64)
    low = np.zeros(n_vertices, np.int64)
    cursor = pointers[:-1].copy()
    entered_by = np.full(n_vertices, -1, np.int64)
    stack = np.empty(n_vertices, np.int32)
    count = 0
    for root in range(n_vertices):
        if number[root] != 0:
            continue
        depth = 0
        stack[0] = root
        count += 1
        number[root] = count
        low[root] = count
        while depth >= 0:
            v = stack[depth]
            if cursor[v] < pointers[v + 1]:
                t = cursor[v]
                cursor[v] += 1
                u = neighbors[t]
                e = edge_of[t]
                if e == entered_by[v]:
                    continue
                if number[u] == 0:
                    entered_by[u] = e
                    count += 1
                    number[u] = count
                    low[u] = count
                    depth += 1
                    stack[depth] = u
                else:
                    low[v] = min(low[v], number[u])
            else:
                depth -= 1
                if depth >= 0:
                    parent = stack[depth]
                    low[parent] = min(low[parent], low[v])
                    if low[v] > number[parent]:
                        is_bridge[entered_by[v]] = True
    return is_bridge


@njit(cache=True, nogil=True)
def breadth_first(pointers, neighbors, roots):
    """Visit what can be reached from each root that has not been reached before, breadth first.

    Return the vertices in this order, the place in it of each one's parent (-1 for a root), and the place of each root,
    closed by the number of vertices reached.
    """
    n_vertices = pointers.size - 1
    order = np.empty(n_vertices, np.int32)
    parents = np.empty(n_vertices, np.int32)
    starts = np.empty(roots.size + 1, np.int64)
    seen = np.zeros(n_vertices, np.bool_)
    n_trees, bottom, top = 0, 0, 0
    for root in roots:
        if seen[root]:
            continue
        seen[root] = True
        order[top], parents[top], starts[n_trees] = root, -1, top
        n_trees, top = n_trees + 1, top + 1
        while bottom < top:
            v = order[bottom]
            for t in range(pointers[v], pointers[v + 1]):
                u = neighbors[t]
                if not seen[u]:
                    seen[u] = True
                    order[top], parents[top] = u, bottom
                    top += 1
            bottom += 1
    starts[n_trees] = top
    return order[:top], parents[:top], starts[: n_trees + 1].copy()


@njit(cache=True, nogil=True)
def cut_into_blocks(parents, block_size, stays):
    """Cut edges of a forest, from the leaves upwards, so that no tree that is left is larger than `block_size`.

    Places where `stays` is set stay with their parents in any case. Return the block of each place, and the block above
    each block: that of its root's parent, -1 if there is none.
    """
    n = parents.size
    size = np.ones(n, np.int64)
    is_root = parents < 0
    for k in range(n - 1, -1, -1):
        if not is_root[k]:
            if stays[k] or size[parents[k]] + size[k] <= block_size:
                size[parents[k]] += size[k]
            else:
                is_root[k] = True
    blocks, above = np.empty(n, np.int64), np.empty(np.count_nonzero(is_root), np.int64)
    n_blocks = 0
    for k in range(n):
        if is_root[k]:
            blocks[k] = n_blocks
            above[n_blocks] = blocks[parents[k]] if parents[k] >= 0 else -1
            n_blocks += 1
        else:
            blocks[k] = blocks[parents[k]]
    return blocks, above


@njit(cache=True, nogil=True)
def pack_blocks(blocks, above, limit):
    """Number pieces of whole blocks: up to `limit` vertices of their own, and as many in the blocks above them."""
    sizes = np.bincount(blocks)
    pieces, held_in = np.empty(sizes.size, np.int64), np.full(sizes.size, -1, np.int64)
    piece, own, others = 0, 0, 0
    for block in range(sizes.size):
        a = above[block]
        needed = 0 if a < 0 or held_in[a] == piece else sizes[a]
        if own > 0 and (own + sizes[block] > limit or others + needed > limit):
            piece, own, others = piece + 1, 0, 0
            needed = 0 if a < 0 else sizes[a]
        own, others = own + sizes[block], others + needed
        pieces[block] = held_in[block] = piece
        if a >= 0:
            held_in[a] = piece
    return pieces
