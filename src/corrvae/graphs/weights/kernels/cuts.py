"""Where to stop eliminating: the cheapest place to hand a piece's core to dense arithmetic.

The ordering has told the size of every pivot, so the cost of each possible cut is known before anything is allocated.
The constants are seconds on one present-day core; only their ratios matter to the choice.
"""

import numpy as np

from corrvae.compiling import kernel

SECONDS_A_PIVOT = 4e-7
SECONDS_AN_ENTRY = 6e-9  # of a column: symbolic work, gathering, writing back
SECONDS_A_PAIR = 1.2e-9  # of a column's entries: star-mesh and the way back
SECONDS_A_CORE_ENTRY = 6e-9
SECONDS_A_CORE_CUBE = 3.3e-11
SMALLEST_CORE = 64


@kernel()
def column_cost(pivot_size, tail):
    """Seconds and bytes of a pivot of `pivot_size` vertices, all joined to `tail` later ones."""
    entries = 0.5 * pivot_size * (pivot_size - 1) + float(pivot_size) * tail
    pairs = 0.0
    for i in range(pivot_size):
        pairs += float(tail + i) ** 2
    front = float(tail + pivot_size)
    seconds = SECONDS_A_PIVOT + SECONDS_AN_ENTRY * entries + SECONDS_A_PAIR * (pairs + front * front)
    return seconds, 8.0 * entries + 4.0 * tail


@kernel()
def choose_cuts(piece_starts, pivot_sizes, pivot_tails, piece_pivots, piece_hubs, budget):
    """Cheapest cut of every piece whose columns and core fit in `budget` bytes.

    Returns, for each piece, the number of pivots to eliminate, the predicted seconds, the bytes of its columns, and the
    number of vertices in its core. When no cut fits, the cut that needs least memory is taken.
    """
    n_pieces = piece_starts.size - 1
    n_eliminated = np.zeros(n_pieces, np.int64)
    seconds = np.zeros(n_pieces, np.float64)
    column_bytes = np.zeros(n_pieces, np.float64)
    core_sizes = np.zeros(n_pieces, np.int64)
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
                    column_bytes[piece] = needed - 8.0 * core * core
                    core_sizes[piece] = core
            if pivot < last:
                pivot_size = pivot_sizes[pivot]
                tail = min(pivot_tails[pivot] + piece_hubs[piece], core - pivot_size)
                cost, entries = column_cost(pivot_size, tail)
                spent += cost
                size += entries
                largest_front = max(largest_front, float(tail + pivot_size))
                eliminated += pivot_size
    return n_eliminated, seconds, column_bytes, core_sizes


@kernel()
def cut_at_degree(piece_starts, pivot_sizes, pivot_tails, piece_pivots, piece_hubs, largest_degree):
    """Cut every piece before the first pivot that is joined to more than `largest_degree` others, hubs left out.

    Returns, for each piece, the number of pivots to eliminate, the number of vertices left, and the bytes of the
    columns.
    """
    n_pieces = piece_starts.size - 1
    n_eliminated = np.zeros(n_pieces, np.int64)
    core_sizes = np.zeros(n_pieces, np.int64)
    column_bytes = np.zeros(n_pieces, np.float64)
    for piece in range(n_pieces):
        core_sizes[piece] = piece_starts[piece + 1] - piece_starts[piece]
        for pivot in range(piece_pivots[piece], piece_pivots[piece + 1]):
            if pivot_tails[pivot] + pivot_sizes[pivot] - 1 > largest_degree:
                break
            n_eliminated[piece] += 1
            core_sizes[piece] -= pivot_sizes[pivot]
            tail = min(pivot_tails[pivot] + piece_hubs[piece], core_sizes[piece])
            column_bytes[piece] += column_cost(pivot_sizes[pivot], tail)[1]
    return n_eliminated, core_sizes, column_bytes
