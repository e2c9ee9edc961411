"""Pairs that may be among the best, as far as float32 can tell, and the exact decision between them."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.scoring.correlated.kernels import settling
from corrvae.scoring.correlated.sweep import Sweep
from corrvae.scoring.points import Exclusions

NOWHERE = np.iinfo(np.int64).max
# Pairs that are kept whatever memory there is, and bytes that each takes, copies included.
_FEWEST, _BYTES = 2**14, 128
# Pairs that are evaluated at a time: their points' vectors lie side by side.
_AT_A_TIME = 256


@final
@dataclass(frozen=True, eq=False)
class _Pairs:
    """A group of queries and a group of candidates each, with the least that the distance can be.

    `costs` are the exact distances, not a number where they are not known yet.
    """

    groups: Int[np.ndarray, " pairs"]
    others: Int[np.ndarray, " pairs"]
    lower: Float[np.ndarray, " pairs"]
    costs: Float[np.ndarray, " pairs"]

    def take(self, chosen: np.ndarray) -> "_Pairs":
        return _Pairs(self.groups[chosen], self.others[chosen], self.lower[chosen], self.costs[chosen])

    def __len__(self) -> int:
        return len(self.groups)


@final
class Pool:
    """Candidates whose exact distance is looked at once the sweep has shown how far the best reach.

    One thread at a time may add to it. It keeps itself within memory: when it is full, what is out of reach by now
    goes, and if that is not enough the exact distances of the rest are evaluated there and then.

    Parameters
    ----------
    sweep
        Evaluates exact distances.
    reach
        For each query, no less than the distance of the last of its best. Lowered when exact distances allow it.
    kept
        How many candidates each query keeps.
    exclusions
        Candidates that queries leave out.
    n_candidates
        Number of candidates.
    memory
        Bytes that the pool may take, beyond some thousand pairs.
    """

    def __init__(
        self,
        sweep: Sweep,
        reach: Float[np.ndarray, " queries"],
        kept: int,
        exclusions: Exclusions,
        n_candidates: int,
        memory: int,
    ) -> None:
        self._sweep, self._reach, self._kept = sweep, reach, kept
        self._exclusions, self._n_candidates = exclusions, n_candidates
        self._most = max(_FEWEST, memory // _BYTES)
        self._pieces: list[_Pairs] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(
        self,
        groups: Int[np.ndarray, " pairs"],
        others: Int[np.ndarray, " pairs"],
        lower: Float[np.ndarray, " pairs"],
    ) -> None:
        """Add groups of queries and of candidates, with the least that their distances can be."""
        self._pieces.append(_Pairs(groups, others, lower, np.full(len(groups), np.nan)))
        self._size += len(groups)
        if self._size > self._most:
            self._within_reach()
            if self._size > self._most // 2:
                self._decide_inside()

    def best(self) -> tuple[Float[np.ndarray, "queries kept"], Int[np.ndarray, "queries kept"]]:
        """Give each query's best by exact distance and then by position: infinite and `NOWHERE` where there are fewer.

        Works on all threads.
        """
        pairs = self._within_reach()
        unknown = np.flatnonzero(np.isnan(pairs.costs))
        self._sweep.monitor.phase("deciding between close candidates", len(unknown))

        def work(some: np.ndarray) -> None:
            self._evaluate(pairs, some)
            self._sweep.count(len(some))

        self._sweep.each(_split(unknown), work)
        return self._best_of(pairs)

    def _decide_inside(self) -> None:
        """Evaluate what is there, in the thread that adds, and keep what is among the best so far."""
        pairs = self._pieces[0]
        for some in _split(np.flatnonzero(np.isnan(pairs.costs))):
            self._evaluate(pairs, some)
        costs, positions = self._best_of(pairs)
        np.minimum(self._reach, costs[:, -1], out=self._reach)
        kept = np.zeros(len(pairs), np.bool_)
        listed = pairs.groups, pairs.others, pairs.costs
        settling.still_matter(*listed, *self._members(), costs, positions, kept)
        self._pieces, self._size = [pairs.take(kept)], int(kept.sum())
        self._most = max(self._most, 4 * self._size)

    def _within_reach(self) -> _Pairs:
        """Drop what is out of reach; the rest becomes one piece, in the order of its queries."""
        names = ("groups", "others", "lower", "costs")
        empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0)
        pieces = [_Pairs(*empty), *self._pieces]
        pairs = _Pairs(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))
        groups = self._sweep.left_groups
        reach = np.maximum.reduceat(self._reach[groups.members], groups.offsets[:-1])
        pairs = pairs.take(pairs.lower <= reach[pairs.groups])
        pairs = pairs.take(np.argsort(pairs.groups, kind="stable"))
        self._pieces, self._size = [pairs], len(pairs)
        return pairs

    def _evaluate(self, pairs: _Pairs, some: Int[np.ndarray, " some"]) -> None:
        (rows, i), (columns, j) = (np.unique(end[some], return_inverse=True) for end in (pairs.groups, pairs.others))
        pairs.costs[some] = self._sweep.exact(self._sweep.read_left(rows), self._sweep.read_right(columns), i, j)

    def _best_of(self, pairs: _Pairs) -> tuple[np.ndarray, np.ndarray]:
        costs = np.full((len(self._reach), self._kept), np.inf)
        positions = np.full(costs.shape, NOWHERE)
        listed = pairs.groups, pairs.others, pairs.costs
        excluded = self._exclusions.offsets, self._exclusions.candidates, np.full(self._n_candidates, -1)
        settling.offer_listed(*listed, *self._members(), costs, positions, *excluded)
        return costs, positions

    def _members(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        left, right = self._sweep.left_groups, self._sweep.right_groups
        return left.offsets, left.members, right.offsets, right.members


def _split(places: np.ndarray) -> list[np.ndarray]:
    return np.split(places, range(_AT_A_TIME, len(places), _AT_A_TIME))
