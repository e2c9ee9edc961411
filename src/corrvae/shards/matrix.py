"""A sparse matrix that lies on the disk in shards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy import sparse

from corrvae.errors import FolderError
from corrvae.shards.files import COLUMNS, OFFSETS, VALUES, ArrayFile, most_maps
from corrvae.shards.kernels.picking import copy_rows, measure_rows

# What a pass over all rows holds at a time; a row that is longer comes alone.
_PIECE_ROWS, _PIECE_ENTRIES = 1 << 14, 1 << 19


@final
@dataclass(frozen=True)
class Shard:
    """A range of rows in three files.

    Attributes
    ----------
    n_rows, n_entries
        How many there are.
    offsets, columns, values
        Where each row begins, and behind the last one; the columns of the entries; the entries.
    """

    n_rows: int
    n_entries: int
    offsets: ArrayFile
    columns: ArrayFile
    values: ArrayFile

    @classmethod
    def find(
        cls, folder: Path, number: int, n_rows: int, n_entries: int, checksums: Sequence[str | None] = (None,) * 3
    ) -> "Shard":
        """Look at the files of a shard, and refuse those that do not have the sizes that they should have."""
        offsets, columns, values = shard_files(folder, number)
        sums = dict(zip((offsets, columns, values), checksums, strict=True))
        found = cls(
            n_rows,
            n_entries,
            ArrayFile.find(offsets, OFFSETS, n_rows + 1, sums[offsets]),
            ArrayFile.find(columns, COLUMNS, n_entries, sums[columns]),
            ArrayFile.find(values, VALUES, n_entries, sums[values]),
        )
        ends = int(found.offsets.read(0, 1)[0]), int(found.offsets.read(n_rows, n_rows + 1)[0])
        if ends != (0, n_entries):
            raise FolderError(offsets, f"damaged: its rows are not those of {n_entries:,} entries")
        return found


def shard_files(folder: Path, number: int) -> tuple[Path, Path, Path]:
    """Name the files of a shard: offsets, columns and values.

    Examples
    --------
    >>> shard_files(Path("shards"), 3)[1].name
    '000003.columns.npy'
    """
    offsets, columns, values = (folder / f"{number:06d}.{part}.npy" for part in ("offsets", "columns", "values"))
    return offsets, columns, values


@final
@dataclass(frozen=True, eq=False)
class PickedRows:
    """Rows that were copied out of a matrix.

    Attributes
    ----------
    values, columns
        The entries, row after row, columns ascending.
    offsets
        Where each row begins, and behind the last one.
    row_of
        The row of each entry, counted among the picked ones.
    """

    values: Float[np.ndarray, " entries"]
    columns: Int[np.ndarray, " entries"]
    offsets: Int[np.ndarray, " bounds"]
    row_of: Int[np.ndarray, " entries"]


@final
class ShardedMatrix:
    """A sparse matrix of float32 on the disk, of which rows are read as they are needed.

    `corrvae.reading.read_features` and `open_shards` give one, and `CorrelatedVAE` takes it where it takes a SciPy
    matrix. Single rows are read through memory maps, whose pages the system drops when it needs their memory; passes
    over all rows read piece by piece and map nothing. What is read is checked, since any program may write to a file:
    a damaged one raises a `FolderError`. It can be pickled, as the path that it is.

    Parameters
    ----------
    path
        The folder, for sentences and pickles.
    shards
        Ranges of rows, one after the other.
    n_columns
        Columns of the matrix.
    n_stored
        Columns of the files, where others are asked for.
    places
        The column that each of those becomes, -1 for one that is left out; ``None``: they stay.

    Attributes
    ----------
    shape : tuple
        Rows and columns.
    nnz : int
        Entries in the files, those of columns that are left out too.
    path : pathlib.Path
        As given.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from corrvae.shards import open_shards, write_shards
    >>> with TemporaryDirectory() as folder:
    ...     write_shards(f"{folder}/eye", [sparse.csr_array(np.eye(4, dtype=np.float32))], n_columns=4, most_rows=3)
    ...     matrix = open_shards(f"{folder}/eye").matrix
    ...     matrix, matrix[1:3].toarray().tolist(), matrix.pick(np.array([3, 0])).columns.tolist()
    (ShardedMatrix(4 rows, 4 columns, 4 entries, 2 shards), [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], [3, 0])
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        path: Path,
        shards: Sequence[Shard],
        n_columns: int,
        n_stored: int | None = None,
        places: Int[np.ndarray, " columns"] | None = None,
    ) -> None:
        self.path = path
        self._shards = tuple(shards)
        self._starts = np.cumsum([0, *(shard.n_rows for shard in self._shards)])
        self._places, self._n_stored = places, n_columns if n_stored is None else n_stored
        self.shape: tuple[int, int] = (int(self._starts[-1]), n_columns)
        self.nnz = sum(shard.n_entries for shard in self._shards)
        self._most_maps = most_maps()
        self._mapped: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def with_columns(self, places: Int[np.ndarray, " columns"], n_columns: int) -> "ShardedMatrix":
        """Give the matrix with other columns, read from the same files.

        Parameters
        ----------
        places
            The new column of each of the present ones, no two the same, or -1 to leave it out.
        n_columns
            How many columns there are then.
        """
        if self._places is not None:
            places = np.where(self._places >= 0, places[self._places], -1)
        return ShardedMatrix(self.path, self._shards, n_columns, self._n_stored, places)

    def check(self) -> None:
        """Read all files once, and raise a `FolderError` that names one whose contents do not match its checksum."""
        for shard in self._shards:
            for file in (shard.offsets, shard.columns, shard.values):
                file.check()

    def pick(self, rows: Int[np.ndarray, " rows"]) -> PickedRows:
        """Copy the rows of these numbers, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and not (rows.min() >= 0 and rows.max() < self.shape[0]):
            raise IndexError(f"rows are 0 to {self.shape[0] - 1}, asked for {rows.min()} to {rows.max()}")
        parts = list(self._by_shard(rows))
        offsets = np.zeros(len(rows) + 1, np.int64)
        for number, inside, places in parts:
            if not measure_rows(self._map(number)[0], inside, places, self._shards[number].n_entries, offsets):
                raise self._damaged(number)
        np.cumsum(offsets, out=offsets)
        count = int(offsets[-1])
        values, columns = np.empty(count, np.float32), np.empty(count, np.int64)
        row_of = np.empty(count, np.int64)
        for number, inside, places in parts:
            copied = inside, places, self._n_stored, offsets, values, columns, row_of
            if not copy_rows(*self._map(number), *copied):
                raise self._damaged(number)
        picked = PickedRows(values, columns, offsets, row_of)
        return picked if self._places is None else self._placed(picked)

    def pieces(self) -> Iterator[tuple[int, sparse.csr_array]]:
        """Give all rows in their order, some at a time, each time with the number of the first."""
        for start, shard in zip(self._starts.tolist(), self._shards, strict=False):
            for begin in range(0, shard.n_rows, _PIECE_ROWS):
                end = min(begin + _PIECE_ROWS, shard.n_rows)
                offsets = shard.offsets.read(begin, end + 1)
                first = 0
                while first < end - begin:
                    room = int(np.searchsorted(offsets, offsets[first] + _PIECE_ENTRIES, side="right")) - 1
                    last = min(max(first + 1, room), end - begin)
                    yield start + begin + first, self._block(shard, offsets[first : last + 1])
                    first = last

    def __getitem__(self, rows: slice) -> "sparse.csr_array | ShardedMatrix":
        """Give some rows that follow each other, in memory; or, by ``[:]``, the matrix itself."""
        begin, end, step = rows.indices(self.shape[0])
        if step != 1:
            raise IndexError("rows of a sharded matrix are sliced one after the other; pick gives others")
        if (begin, end) == (0, self.shape[0]):
            return self
        blocks = [sparse.csr_array((0, self.shape[1]), dtype=np.float32)]
        for start, shard in zip(self._starts.tolist(), self._shards, strict=False):
            first, last = max(begin - start, 0), min(end - start, shard.n_rows)
            if first < last:
                blocks.append(self._block(shard, shard.offsets.read(first, last + 1)))
        return blocks[-1] if len(blocks) <= 2 else sparse.csr_array(sparse.vstack(blocks[1:], format="csr"))

    def __reduce__(self) -> Any:
        from corrvae.shards.folder import reopen

        return reopen, (str(self.path.absolute()), self._places, self.shape)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"ShardedMatrix({rows:,} rows, {columns:,} columns, {self.nnz:,} entries, {len(self._shards)} shards)"

    def _by_shard(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Give the shards that have some of the rows, with the rows' numbers in them and their places among all."""
        if len(self._shards) == 1:
            yield 0, rows, np.arange(len(rows))
            return
        number_of = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(number_of, kind="stable")
        cuts = np.flatnonzero(np.diff(number_of[order])) + 1
        for places in np.split(order, cuts):
            if len(places):
                number = int(number_of[places[0]])
                yield number, rows[places] - self._starts[number], places

    def _map(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if number not in self._mapped:
            while 3 * len(self._mapped) + 3 > max(3, self._most_maps):
                self._mapped.pop(next(iter(self._mapped)))
            shard = self._shards[number]
            self._mapped[number] = shard.offsets.map(), shard.columns.map(), shard.values.map()
        return self._mapped[number]

    def _block(self, shard: Shard, offsets: Shaped[np.ndarray, " bounds"]) -> sparse.csr_array:
        """Read rows into memory, given where each of them begins."""
        begin, end = int(offsets[0]), int(offsets[-1])
        # compared, not subtracted: a difference of such numbers may wrap round to one that is not negative
        if not (0 <= begin <= end <= shard.n_entries and (offsets[1:] >= offsets[:-1]).all()):
            raise FolderError(shard.offsets.path, "damaged: its rows do not follow each other")
        lengths = np.diff(offsets)
        columns, values = shard.columns.read(begin, end), shard.values.read(begin, end)
        row_of = np.repeat(np.arange(len(lengths)), lengths)
        if len(columns) and (columns.min() < 0 or columns.max() >= self._n_stored):
            raise FolderError(shard.columns.path, f"damaged: a column is none of {self._n_stored:,}")
        if not ((np.diff(columns) > 0) | (np.diff(row_of) > 0)).all():
            raise FolderError(shard.columns.path, "damaged: the columns of a row do not ascend")
        found = PickedRows(values, columns, offsets - begin, row_of)
        if self._places is not None:
            found = self._placed(found)
        shape = (len(lengths), self.shape[1])
        return sparse.csr_array((found.values, found.columns, found.offsets), shape=shape)

    def _placed(self, picked: PickedRows) -> PickedRows:
        """Give entries their new columns, in ascending order, and leave out those that have none."""
        moved = np.asarray(self._places)[picked.columns]
        kept = np.flatnonzero(moved >= 0)
        kept = kept[np.lexsort((moved[kept], picked.row_of[kept]))]
        lengths = np.bincount(picked.row_of[kept], minlength=len(picked.offsets) - 1)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return PickedRows(picked.values[kept], moved[kept], offsets, picked.row_of[kept])

    def _damaged(self, number: int) -> FolderError:
        return FolderError(self._shards[number].columns.path, "damaged: its entries are no rows of a sparse matrix")
