"""What a search found, as positions; ids are put on by those who know them."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int


@final
@dataclass(frozen=True, eq=False)
class Found:
    """The best candidates of each query, best first.

    Attributes
    ----------
    scores
        Their scores, not a number where a query has fewer candidates than were asked for.
    positions
        Their positions among the candidates, -1 where there is none.
    n_evaluated, n_pairs
        Pairs whose correlation was computed, and pairs in all: what the bounds decided is the difference.
    """

    scores: Float[np.ndarray, "queries neighbors"]
    positions: Int[np.ndarray, "queries neighbors"]
    n_evaluated: int
    n_pairs: int


@final
@dataclass(frozen=True, eq=False)
class FoundRanks:
    """Ranks of given (query, target) pairs.

    Attributes
    ----------
    ranks
        1 plus the number of candidates, other than the target, whose score is at least as good as the target's.
    scores
        The targets' scores.
    n_evaluated, n_pairs
        As in `Found`.
    """

    ranks: Int[np.ndarray, " pairs"]
    scores: Float[np.ndarray, " pairs"]
    n_evaluated: int
    n_pairs: int
