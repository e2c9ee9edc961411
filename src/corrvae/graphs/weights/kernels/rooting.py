"""Blocks of rooted forests."""

import numpy as np
from numba import njit


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
