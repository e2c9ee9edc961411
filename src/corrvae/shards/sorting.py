"""Entries that come in any order, put into the order of rows within a bounded memory.

Entries are written to the disk as they come. Once all are there, it is known how many each row has, and the rows are
divided into bins that fit into memory. Entries are dealt to the files of their bins, through fewer and larger ones
first where bins are many, and each bin is sorted by itself. Where the rows come in order, nothing is dealt.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.monitor import DONE, Monitor
from corrvae.shards.entries import add_up

ENTRY = np.dtype([("row", "<i4"), ("column", "<i4"), ("value", "<f4")])
# Entries that are read and dealt at a time; those of a bin, unless one row has more; rows of a bin; files dealt to.
_BLOCK, _BIN_ENTRIES, _BIN_ROWS, _FILES = 1 << 20, 1 << 21, 1 << 17, 256


@final
class Spool:
    """Entries on the disk, in the order in which they came.

    Parameters
    ----------
    folder
        An empty folder to work in.

    Attributes
    ----------
    n_entries : int
        How many there are.
    in_order : bool
        Whether rows have ascended.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "entries"
        self.n_entries, self.in_order = 0, True
        self._stream = self.path.open("wb", buffering=0)
        self._last = -1
        self._counts = np.zeros(1 << 10, np.int64)

    def append(
        self,
        rows: Int[np.ndarray, " entries"],
        columns: Int[np.ndarray, " entries"],
        values: Float[np.ndarray, " entries"],
    ) -> None:
        """Write entries behind those that are there."""
        if not len(rows):
            return
        highest = int(rows.max())
        if highest >= len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(highest + 1, np.int64)])
        found = np.bincount(rows)
        self._counts[: len(found)] += found
        self.in_order &= bool(rows[0] >= self._last and (np.diff(rows) >= 0).all())
        self._last = int(rows[-1])
        entries = np.empty(len(rows), ENTRY)
        entries["row"], entries["column"], entries["value"] = rows, columns, values
        _write(self._stream, entries)
        self.n_entries += len(rows)

    def counts(self, n_rows: int) -> Int[np.ndarray, " rows"]:
        """Give the number of entries of each row."""
        found = np.zeros(n_rows, np.int64)
        found[: min(n_rows, len(self._counts))] = self._counts[:n_rows]
        return found

    def close(self) -> None:
        """Write nothing more."""
        self._stream.close()


@final
@dataclass(frozen=True)
class SortedRows:
    """Rows that follow those before.

    Attributes
    ----------
    matrix
        Their entries, added up where they repeat.
    n_repeats
        How many did.
    """

    matrix: sparse.csr_array
    n_repeats: int


def sorted_rows(spool: Spool, shape: tuple[int, int], monitor: Monitor) -> Iterator[SortedRows]:
    """Give the rows of a spool in their order, some at a time. The spool's file goes meanwhile.

    Parameters
    ----------
    spool
        The entries; it has been closed.
    shape
        Rows and columns of the matrix that they are of.
    monitor
        Counts the entries that were moved.
    """
    counts = spool.counts(shape[0])
    bins = _bins(counts)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[bins]
    levels = 0 if spool.in_order else math.ceil(math.log(max(1, len(bins) - 1), _FILES))
    monitor.phase("putting rows in order", (levels + 1) * spool.n_entries)
    if spool.in_order:
        parts = ((bin_, spool.path, int(bounds[bin_])) for bin_ in range(len(bins) - 1))
    else:
        parts = _deal(spool.path, bins, 0, len(bins) - 1, monitor)
    for bin_, path, begin in parts:
        monitor.check()
        entries = _read(path, begin, int(bounds[bin_ + 1] - bounds[bin_]))
        n_rows = int(bins[bin_ + 1] - bins[bin_])
        # the columns of an array of records lie apart; copies are quicker to work with
        rows, columns, values = (np.ascontiguousarray(entries[name]) for name in ENTRY.names or ())
        added = add_up(rows - np.int32(bins[bin_]), columns, values, (n_rows, shape[1]))
        monitor.control[DONE] += len(entries)
        yield SortedRows(added.matrix, added.n_repeats)


def _bins(counts: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " bounds"]:
    """Give the row at which each bin begins, and the number of rows."""
    ends = np.cumsum(counts)
    bins = [0]
    while bins[-1] < len(counts):
        begin = bins[-1]
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + _BIN_ENTRIES, side="right"))
        bins.append(min(max(end, begin + 1), begin + _BIN_ROWS))
    return np.array(bins)


def _deal(source: Path, bins: np.ndarray, first: int, last: int, monitor: Monitor) -> Iterator[tuple[int, Path, int]]:
    """Give the bins from first to before last, each with the file that holds its entries, and where they begin."""
    if last - first <= 1:
        if last > first:
            yield first, source, 0
        source.unlink(missing_ok=True)
        return
    step = math.ceil((last - first) / _FILES)
    cuts = np.append(np.arange(first, last, step), last)
    files = [source.with_name(f"{source.name}.{number}") for number in range(len(cuts) - 1)]
    for file in files:
        file.touch()
    n_entries = source.stat().st_size // ENTRY.itemsize
    for begin in range(0, n_entries, _BLOCK):
        monitor.check()
        entries = _read(source, begin, min(_BLOCK, n_entries - begin))
        # stable all the way: the entries of a row stay in the order in which they came
        place = np.searchsorted(bins[cuts], entries["row"], side="right") - 1
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(len(files) + 1))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            with files[number].open("ab", buffering=0) as stream:
                _write(stream, entries[order[bounds[number] : bounds[number + 1]]])
        monitor.control[DONE] += len(entries)
    source.unlink()
    for number, file in enumerate(files):
        yield from _deal(file, bins, int(cuts[number]), int(cuts[number + 1]), monitor)


def _read(path: Path, begin: int, count: int) -> np.ndarray:
    with path.open("rb") as stream:
        stream.seek(begin * ENTRY.itemsize)
        return np.frombuffer(stream.read(count * ENTRY.itemsize), ENTRY)


def _write(stream, entries: np.ndarray) -> None:
    """Write all of it: a file without a buffer may take less at a time."""
    data = memoryview(entries.view(np.uint8).data).cast("B")
    while len(data):
        data = data[stream.write(data) :]
