"""How far to eliminate each piece: to the cheapest dense core, or to where fill begins."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs.weights.kernels.cuts import choose_cuts, cut_at_degree
from corrvae.graphs.weights.pattern import Ordering, Pieces

LARGEST_DEGREE = 12  # of a vertex eliminated before a sketch


@dataclass(frozen=True)
class Cuts:
    """Where the elimination of each piece stops, and what that will cost.

    Attributes
    ----------
    n_eliminated
        Pivots to eliminate of each piece.
    core_sizes
        Vertices left.
    seconds, bytes
        Predicted for each piece with a dense core. Pieces with a core are solved one after another, so the largest of
        them counts; those without are solved together.
    """

    n_eliminated: Int[np.ndarray, " pieces"]
    core_sizes: Int[np.ndarray, " pieces"]
    seconds: Float[np.ndarray, " pieces"]
    bytes: Float[np.ndarray, " pieces"]


def plan_cuts(pieces: Pieces, ordering: Ordering, budget: float) -> Cuts:
    """Choose the fastest cut of each piece that fits in `budget` bytes."""
    n_eliminated, seconds, column_bytes, core_sizes = choose_cuts(
        pieces.starts,
        ordering.pivot_sizes,
        ordering.pivot_tails,
        ordering.piece_pivots,
        ordering.piece_hubs,
        float(budget),
    )
    return Cuts(n_eliminated, core_sizes, seconds, column_bytes + 8.0 * core_sizes.astype(float) ** 2)


def cut_low_degrees(pieces: Pieces, ordering: Ordering) -> Cuts:
    """Eliminate only vertices of few neighbours, which adds little fill."""
    n_eliminated, core_sizes, column_bytes = cut_at_degree(
        pieces.starts,
        ordering.pivot_sizes,
        ordering.pivot_tails,
        ordering.piece_pivots,
        ordering.piece_hubs,
        LARGEST_DEGREE,
    )
    return Cuts(n_eliminated, core_sizes, np.zeros(core_sizes.size), column_bytes)
