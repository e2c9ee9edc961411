"""All pairs of two sets of points, block by block, on all cores: choose what needs evaluation, evaluate, settle."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
import torch
from jaxtyping import Float, Int

from corrvae.graphs.weights.exact import blas_threads
from corrvae.inference import evaluation_mode
from corrvae.monitor import DONE, Monitor
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.kernels.choosing import spread
from corrvae.scoring.correlated.sides import Side, SideReader, vectors_of
from corrvae.scoring.correlated.tiles import pair_tiles
from corrvae.scoring.points import Points

# Groups along the side of a block; fewer where memory is short, more columns where rows are few.
_LARGEST, _SMALLEST, _MOST_COLUMNS = 512, 16, 4096
# Fewer queries than this do not repay the search for equal candidates.
_WORTH_GROUPING = 64
_Job = TypeVar("_Job")


@final
@dataclass(frozen=True, eq=False)
class Block:
    """Some rows against some columns.

    Parameters
    ----------
    rows, columns
        The groups of points on both sides.
    left, right
        What is read of them.
    diagonal
        Whether both sides are the same groups, so that a pair stands in the block twice.
    mirrored
        Whether the columns are queries too, for whom the rows are candidates, and no other block says so.
    """

    rows: Int[np.ndarray, " rows"]
    columns: Int[np.ndarray, " columns"]
    left: Side
    right: Side
    diagonal: bool
    mirrored: bool


@final
@dataclass(frozen=True, eq=False)
class Chosen:
    """Pairs of a block that need the pair network, by row and column; and lower bounds of all its pairs."""

    rows: Int[np.ndarray, " chosen"]
    columns: Int[np.ndarray, " chosen"]
    lower: Float[np.ndarray, "rows columns"]


class Goal(ABC):
    """What a sweep is for."""

    @abstractmethod
    def choose(self, block: Block) -> Chosen:
        """List the pairs that matter; on the diagonal with row <= column. Called by several threads at a time."""

    @abstractmethod
    def settle(self, block: Block, chosen: Chosen, costs: Float[np.ndarray, "rows columns"]) -> None:
        """Take in a block's distances, not a number where they were not asked for. Called by one thread at a time."""


@final
class Sweep:
    """Evaluates pairs of queries and candidates.

    Parameters
    ----------
    queries, candidates
        The points; the same object twice where `same`.
    same
        Whether the queries are the candidates: then every pair is evaluated once for both of its ends.
    memory
        Bytes that blocks may take.
    monitor
        Counts pairs, and may ask to stop.

    Attributes
    ----------
    n_evaluated : int
        Pairs whose correlation was computed so far.
    """

    def __init__(self, queries: Points, candidates: Points, *, same: bool, memory: int, monitor: Monitor) -> None:
        self.same = same
        self.monitor = monitor
        self.n_threads = torch.get_num_threads()
        self.n_evaluated = 0
        monitor.phase("grouping equal points")
        worth = min(len(queries), len(candidates)) >= _WORTH_GROUPING
        group = Distinct.of if worth else lambda points: Distinct.each(len(points))
        self.left_groups = group(queries)
        self.right_groups = self.left_groups if same else group(candidates)
        self._left, self._right = SideReader(queries, self.left_groups), SideReader(candidates, self.right_groups)
        vectors = vectors_of(queries)
        self._model, self._tiles = vectors.model, pair_tiles(vectors.network)
        self._settling, self._width = threading.Lock(), _bytes_of_row(queries)
        self._memory, self._side = memory, self._side_within(memory)

    def run(self, label: str, goal: Goal) -> None:
        """Sweep over all blocks."""
        self.monitor.phase(label, len(self.left_groups) * len(self.right_groups) // (2 if self.same else 1))
        self.each(self._blocks(), lambda ends: self.evaluate(self._read(*ends), goal))

    def each(self, jobs: Iterable[_Job], work: Callable[[_Job], None]) -> None:
        """Do jobs on all threads, each with one thread inside; the first error ends all."""
        waiting, turn, ended = iter(jobs), threading.Lock(), threading.Event()

        def worker() -> None:
            torch.set_num_threads(1)
            try:
                while not ended.is_set():
                    self.monitor.check()
                    with turn:
                        job = next(waiting, None)
                    if job is None:
                        return
                    work(job)
            except BaseException:
                ended.set()
                raise

        with self._quiet(), ThreadPoolExecutor(self.n_threads) as pool:
            try:
                for done in [pool.submit(worker) for _ in range(self.n_threads)]:
                    done.result()
            finally:
                ended.set()
        self.monitor.check()

    def evaluate(self, block: Block, goal: Goal) -> None:
        """Choose, evaluate and settle one block."""
        chosen = goal.choose(block)
        costs = np.full((len(block.left), len(block.right)), np.nan, np.float32)
        if len(chosen.rows):
            pairs = chosen.rows, chosen.columns
            values = self._tiles.distances(block.left, block.right, *pairs, self.monitor.control)
            self.monitor.check()
            bad = spread(*pairs, values, block.diagonal, costs)
            if bad >= 0:
                query = block.left.members[block.left.offsets[chosen.rows[bad]]]
                candidate = block.right.members[block.right.offsets[chosen.columns[bad]]]
                raise ValueError(f"the distance of query {query} and candidate {candidate} is not a number")
        with self._settling:
            goal.settle(block, chosen, costs)
            self.n_evaluated += len(chosen.rows)
            self.monitor.control[DONE] += costs.size // 2 if block.diagonal else costs.size

    def read_left(self, groups: Int[np.ndarray, " groups"]) -> Side:
        """Gather groups of queries."""
        return self._left.read(groups)

    def read_right(self, groups: Int[np.ndarray, " groups"]) -> Side:
        """Gather groups of candidates."""
        return self._right.read(groups)

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        n_rows, n_columns = len(self.left_groups), len(self.right_groups)
        if n_rows == 0 or n_columns == 0:
            return
        wide = self._side if self.same else self._columns_for(n_rows, n_columns)
        for row in range(0, n_rows, self._side):
            for column in range(row if self.same else 0, n_columns, wide):
                ends = min(row + self._side, n_rows), min(column + wide, n_columns)
                yield np.arange(row, ends[0]), np.arange(column, ends[1])

    def _read(self, rows: np.ndarray, columns: np.ndarray) -> Block:
        diagonal = self.same and rows[0] == columns[0]
        left = self.read_left(rows)
        right = left if diagonal else self.read_right(columns)
        return Block(rows, columns, left, right, bool(diagonal), self.same and not diagonal)

    def _columns_for(self, n_rows: int, n_columns: int) -> int:
        """Columns beside few rows: more, as memory allows, but not so many that threads run out of blocks."""
        shared = -(-n_columns // (4 * self.n_threads))
        within = self._memory // (4 * self.n_threads * max(1, self._width))
        return max(self._side, min(self._side * max(1, self._side // n_rows), _MOST_COLUMNS, shared, within))

    def _side_within(self, memory: int) -> int:
        """Largest side whose blocks fit: two sides of points and about six numbers for each pair, in every thread."""
        side = _LARGEST
        while side > _SMALLEST and self.n_threads * (2 * side * self._width + 24 * side**2) > memory:
            side //= 2
        return side

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """One thread inside each of ours, and the model in evaluation mode; afterwards all as it was."""
        before = torch.get_num_threads()
        with blas_threads(1, self.monitor), evaluation_mode(self._model):
            try:
                yield
            finally:
                torch.set_num_threads(before)


def _bytes_of_row(points: Points) -> int:
    if len(points) == 0:
        return 0
    width = vectors_of(points).at(np.zeros(1, np.int64)).shape[1]
    return 4 * (width + 2 * points.n_components)
