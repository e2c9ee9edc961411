"""Drawing vertices and edges, in time that does not depend on how many there are.

Each kind of draw has a generator of its own, and gives its state as JSON, so that a run can be resumed to the bit.
"""

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int


class Draws(ABC):
    """A stream of batches of indices.

    Attributes
    ----------
    batch : int
        How many are drawn at a time.
    """

    batch: int

    @abstractmethod
    def draw(self) -> Int[np.ndarray, " batch"]:
        """Give the next batch."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Give the stream's position as JSON."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Take up a position that `state` gave."""


@final
class ShuffledDraws(Draws):
    """Batches of distinct indices, each index once in an epoch.

    An epoch is a shuffle of all indices, dealt out batch by batch. What is left at its end, too little for a batch, is
    filled up from the next epoch with indices not among it. No index is treated unlike another, so each batch by itself
    is a uniform draw without replacement. Shuffling costs time for all indices, but only once an epoch.

    Parameters
    ----------
    count
        Number of indices.
    batch
        How many to draw at a time; all of them, if there are fewer.
    generator
        Draws the shuffles.

    Examples
    --------
    >>> draws = ShuffledDraws(5, 3, np.random.default_rng(0))
    >>> sorted(np.concatenate([draws.draw() for _ in range(5)]).tolist())
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    """

    def __init__(self, count: int, batch: int, generator: np.random.Generator) -> None:
        self.count = count
        self.batch = min(batch, count)
        self._generator = generator
        self._deal(np.empty(0, dtype=np.int64))

    def draw(self) -> Int[np.ndarray, " batch"]:
        """Give the next batch."""
        if len(self._order) - self._position < self.batch:
            self._deal(self._order[self._position :].astype(np.int64))
        begin = self._position
        self._position += self.batch
        return self._order[begin : self._position].astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Give the position: how the epoch began, and how far it got."""
        return {"begun": self._begun, "carried": self._carried.tolist(), "position": self._position}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a position; a `ValueError` says that it is none in this stream."""
        carried, position = np.array(state["carried"], dtype=np.int64), state["position"]
        distinct = len(set(carried.tolist())) == len(carried) < self.batch
        if not (distinct and type(position) is int and 0 <= position <= self.count + len(carried)):
            raise ValueError(f"no position in a stream of batches of {self.batch} among {self.count:,}")
        self._generator.bit_generator.state = state["begun"]
        self._deal(carried)
        self._position = position

    def _deal(self, carried: np.ndarray) -> None:
        """Begin an epoch with a batch that the carried indices are part of."""
        self._begun, self._carried, self._position = self._generator.bit_generator.state, carried, 0
        narrow = np.int32 if self.count <= np.iinfo(np.int32).max else np.int64
        others = np.arange(self.count, dtype=narrow)
        if len(carried) == 0:
            self._order = self._generator.permutation(others)
            return
        others = self._generator.permutation(np.delete(others, carried))
        filling = self.batch - len(carried)
        later = self._generator.permutation(np.concatenate([others[filling:], carried.astype(narrow)]))
        self._order = np.concatenate([carried.astype(narrow), others[:filling], later])


@final
class WeightedDraws(Draws):
    """Batches of indices in proportion to weights, with replacement.

    Parameters
    ----------
    weights
        One for each index, not negative.
    batch
        How many to draw at a time; all of them, if there are fewer.
    generator
        Draws them.

    Examples
    --------
    >>> WeightedDraws(np.array([0.0, 2.0, 0.0]), 2, np.random.default_rng(0)).draw()
    array([1, 1])
    """

    def __init__(self, weights: Float[np.ndarray, " count"], batch: int, generator: np.random.Generator) -> None:
        self.batch = min(batch, len(weights))
        self._cumulative = np.cumsum(weights, dtype=np.float64)
        self._generator = generator
        positive = np.flatnonzero(weights > 0)
        if len(positive) == 0:
            raise ValueError(f"all {len(weights):,} weights are zero: nothing can be drawn in proportion to them")
        self._last = int(positive[-1])

    def draw(self) -> Int[np.ndarray, " batch"]:
        """Give the next batch."""
        places = self._generator.random(self.batch) * self._cumulative[-1]
        found = np.searchsorted(self._cumulative, places, side="right")
        return np.minimum(found, self._last)  # rounding may lead past the end

    def state(self) -> dict[str, Any]:
        """Give the generator's state."""
        return {"generator": self._generator.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a position."""
        self._generator.bit_generator.state = state["generator"]
