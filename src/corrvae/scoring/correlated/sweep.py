"""All pairs of two sets of points, block by block, on all cores: choose what needs evaluation, evaluate, settle."""

import itertools
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
from corrvae.ranks import Ranks
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.exact import exact_pairs
from corrvae.scoring.correlated.kernels import exact
from corrvae.scoring.correlated.sides import Side, SideReader, not_a_number, vectors_of
from corrvae.scoring.correlated.tiles import pair_tiles
from corrvae.scoring.points import Points

# Groups along the side of a block; fewer where memory is short, more columns where rows are few.
_LARGEST, _SMALLEST, _MOST_COLUMNS = 512, 16, 4096
# Fewer queries than this do not repay the search for equal candidates.
_WORTH_GROUPING = 64
# Pairs whose exact distances are evaluated at a time.
_EXACT_PAIRS = 1024
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
    """Pairs of a block that need the pair network, by row and column; and lower bounds of all its pairs.

    On the diagonal a pair is listed once, with row <= column.
    """

    rows: Int[np.ndarray, " chosen"]
    columns: Int[np.ndarray, " chosen"]
    lower: Float[np.ndarray, "rows columns"]


@final
@dataclass(frozen=True, eq=False)
class Estimates:
    """Distances of the chosen pairs, and how far each may be from the exact one."""

    values: Float[np.ndarray, " chosen"]
    errors: Float[np.ndarray, " chosen"]


class Goal(ABC):
    """What a sweep is for. Several threads may call it at a time."""

    @abstractmethod
    def choose(self, block: Block) -> Chosen:
        """List the pairs that matter."""

    @abstractmethod
    def settle(self, block: Block, chosen: Chosen, estimates: Estimates) -> None:
        """Take in the distances of the chosen pairs."""


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
    asking
        Positions of the only queries to look at, if not all; not where `same`.

    Attributes
    ----------
    n_evaluated : int
        Pairs whose correlation was computed so far.
    n_threads : int
        Threads that share the work.
    bytes_of_row : int
        What a point takes on a side of a block.
    left_groups, right_groups : Distinct
        Equal queries, equal candidates.
    """

    def __init__(
        self,
        queries: Points,
        candidates: Points,
        *,
        same: bool,
        memory: int,
        monitor: Monitor,
        asking: Int[np.ndarray, " asking"] | None = None,
    ) -> None:
        self.same = same
        self.monitor = monitor
        # before anything else in this thread asks torch for something, and while no other search holds it at one thread
        with blas_threads(1, monitor):
            self.n_threads = torch.get_num_threads()
        self.n_evaluated = 0
        monitor.phase("grouping equal points")
        worth = min(len(queries), len(candidates)) >= _WORTH_GROUPING
        group = Distinct.of if worth else lambda points: Distinct.each(len(points))
        self.left_groups = group(queries) if asking is None else Distinct.some(asking)
        self.right_groups = self.left_groups if same else group(candidates)
        self._left, self._right = SideReader(queries, self.left_groups), SideReader(candidates, self.right_groups)
        vectors = vectors_of(queries)
        self._model, self._tiles = vectors.model, pair_tiles(vectors.network)
        self._exact = exact_pairs(vectors.network)
        self._counting, self.bytes_of_row = threading.Lock(), _bytes_of_row(queries)
        self._memory = memory

    def run(self, label: str, goal: Goal, ranks: Ranks | None = None) -> None:
        """Sweep over all blocks, or over this rank's share of them; with ranks, it begins with an exchange."""
        ranks = Ranks() if ranks is None else ranks
        # one layout, though ranks may have other numbers of threads; one that fits where there are most
        blocks = self._blocks(int(ranks.gather_rows(np.array([self.n_threads])).max()))
        self.monitor.phase(label, len(self.left_groups) * len(self.right_groups) // (2 if self.same else 1))

        def work(ends: tuple[np.ndarray, np.ndarray]) -> None:
            block = self._read(*ends)
            self.evaluate(block, goal)
            n_pairs = len(block.left) * len(block.right)
            self.count(n_pairs // 2 if block.diagonal else n_pairs)

        # in turns, as blocks at the end may have less to do
        self.each(itertools.islice(blocks, ranks.index, None, ranks.count), work)

    def count(self, n_done: int) -> None:
        """Tell the monitor what has been done of a phase."""
        with self._counting:
            self.monitor.control[DONE] += n_done

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
        sides, pairs = (block.left, block.right), (chosen.rows, chosen.columns)
        values = self._tiles.distances(*sides, *pairs, self.monitor.control)
        self.monitor.check()
        errors = self._tiles.errors(*sides, *pairs, values)
        bad = np.isnan(values) | np.isnan(errors)
        if bad.any():
            row, column = chosen.rows[bad][0], chosen.columns[bad][0]
            query, candidate = (
                int(side.members[side.offsets[n]]) for side, n in zip(sides, (row, column), strict=True)
            )
            raise ValueError(not_a_number(query, candidate))
        goal.settle(block, chosen, Estimates(values, errors))
        with self._counting:
            self.n_evaluated += len(chosen.rows)

    def exact(
        self, left: Side, right: Side, rows: Int[np.ndarray, " pairs"], columns: Int[np.ndarray, " pairs"]
    ) -> Float[np.ndarray, " pairs"]:
        """Give the exact distances of pairs of a row on the left and a row on the right."""
        values = np.empty(len(rows))
        for begin in range(0, len(rows), _EXACT_PAIRS):
            self.monitor.check()
            piece = slice(begin, begin + _EXACT_PAIRS)
            pairs = rows[piece], columns[piece]
            a = self._exact.pre_activation(left.vectors, right.vectors, *pairs)
            exact.distances(left.mean, left.stddev, right.mean, right.stddev, *pairs, a, values[piece])
        return values

    def read_left(self, groups: Int[np.ndarray, " groups"]) -> Side:
        """Gather groups of queries."""
        return self._left.read(groups)

    def read_right(self, groups: Int[np.ndarray, " groups"]) -> Side:
        """Gather groups of candidates."""
        return self._right.read(groups)

    def _blocks(self, n_threads: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Lay out blocks of which so many threads have enough to do, and which fit into memory side by side."""
        n_rows, n_columns = len(self.left_groups), len(self.right_groups)
        if n_rows == 0 or n_columns == 0:
            return
        side = self._side_for(n_threads)
        wide = side if self.same else self._columns_for(n_threads, side)
        for row in range(0, n_rows, side):
            for column in range(row if self.same else 0, n_columns, wide):
                ends = min(row + side, n_rows), min(column + wide, n_columns)
                yield np.arange(row, ends[0]), np.arange(column, ends[1])

    def _read(self, rows: np.ndarray, columns: np.ndarray) -> Block:
        diagonal = self.same and rows[0] == columns[0]
        left = self.read_left(rows)
        right = left if diagonal else self.read_right(columns)
        return Block(rows, columns, left, right, bool(diagonal), self.same and not diagonal)

    def _columns_for(self, n_threads: int, side: int) -> int:
        """Columns beside few rows: more, as memory allows, but not so many that threads run out of blocks."""
        shared = -(-len(self.right_groups) // (4 * n_threads))
        within = self._memory // (4 * n_threads * max(1, self.bytes_of_row))
        return max(side, min(side * max(1, side // len(self.left_groups)), _MOST_COLUMNS, shared, within))

    def _side_for(self, n_threads: int) -> int:
        """Largest side whose blocks fit: two sides of points and about ten numbers for each pair, in every thread."""
        side = _LARGEST
        while side > _SMALLEST and n_threads * (2 * side * self.bytes_of_row + 40 * side**2) > self._memory:
            side //= 2
        return side

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """One thread inside each of ours, and the model in evaluation mode; afterwards all as it was."""
        with blas_threads(1, self.monitor), evaluation_mode(self._model):
            try:
                yield
            finally:
                torch.set_num_threads(self.n_threads)


def _bytes_of_row(points: Points) -> int:
    if len(points) == 0:
        return 0
    width = vectors_of(points).at(np.zeros(1, np.int64)).shape[1]
    return 4 * (width + 2 * points.n_components)
