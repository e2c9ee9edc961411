"""Shards written: rows that come block by block, in their order."""

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Shaped
from scipy import sparse

from corrvae.drafts import draft_of, naming, sync
from corrvae.persistence import write_folder
from corrvae.shards.files import COLUMNS, OFFSETS, VALUES, ArrayWriter
from corrvae.shards.folder import IDS, ITEMS, KIND, SHARDS, VERSION
from corrvae.shards.matrix import shard_files

if TYPE_CHECKING:
    import pyarrow

# A shard has a gigabyte of entries at most, unless one row has more.
MOST_ROWS, MOST_ENTRIES = 1 << 20, 1 << 27


@final
class ShardWriter:
    """The shards of a matrix in the making, to be used as a context manager.

    Parameters
    ----------
    folder
        An empty folder.
    most_rows, most_entries
        Of a shard.

    Attributes
    ----------
    sizes : list of dict
        Rows, entries and checksums of the shards that are finished.
    n_rows, n_entries : int
        Of all of them.
    """

    def __init__(self, folder: Path, *, most_rows: int = MOST_ROWS, most_entries: int = MOST_ENTRIES) -> None:
        self._folder, self._most_rows, self._most_entries = folder, most_rows, most_entries
        self.sizes: list[dict[str, Any]] = []
        self._files: list[ArrayWriter] = []

    @property
    def n_rows(self) -> int:
        """Rows of the finished shards."""
        return sum(size["rows"] for size in self.sizes)

    @property
    def n_entries(self) -> int:
        """Entries of the finished shards."""
        return sum(size["entries"] for size in self.sizes)

    def append(self, block: sparse.csr_array) -> None:
        """Write rows behind those that are there. They must be sorted, without repeats."""
        bounds = block.indptr.astype(np.int64)
        begin, n_rows = 0, len(bounds) - 1
        while begin < n_rows:
            if not self._files:
                self._begin()
            offsets, columns, values = self._files
            room = self._most_entries - values.count
            end = min(
                n_rows,
                begin + self._most_rows - (offsets.count - 1),
                int(np.searchsorted(bounds, bounds[begin] + room, side="right")) - 1,
            )
            if end <= begin and offsets.count > 1:
                self._finish()
                continue
            end = max(end, begin + 1)
            first, last = int(bounds[begin]), int(bounds[end])
            offsets.append(bounds[begin + 1 : end + 1] - first + values.count)
            columns.append(block.indices[first:last])
            values.append(block.data[first:last])
            begin = end

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._finish()
            sync(self._folder)
        for file in self._files:
            file.abandon()

    def _begin(self) -> None:
        kinds = (OFFSETS, COLUMNS, VALUES)
        for path, kind in zip(shard_files(self._folder, len(self.sizes)), kinds, strict=True):
            self._files.append(ArrayWriter(path, kind))
        self._files[0].append(np.zeros(1, np.int64))

    def _finish(self) -> None:
        if not self._files:
            return
        offsets, _, values = self._files
        checksums = [file.checksum for file in self._files]
        self.sizes.append({"rows": offsets.count - 1, "entries": values.count, "sha256": checksums})
        for file in self._files:
            file.close()
        self._files = []


def write_shards(
    path: str | os.PathLike[str],
    blocks: Iterable[sparse.csr_array | np.ndarray],
    *,
    n_columns: int,
    ids: Shaped[np.ndarray, " rows"] | None = None,
    names: Sequence[str] | None = None,
    most_rows: int = MOST_ROWS,
    most_entries: int = MOST_ENTRIES,
) -> None:
    """Write a matrix that comes in blocks of rows to a folder of shards, whole or not at all.

    A folder of shards of this name is replaced once the new one is written.

    Parameters
    ----------
    path
        The folder.
    blocks
        Rows, some at a time; one block is in memory at once.
    n_columns
        Columns of each block.
    ids, names
        Of rows and columns, if they have some: distinct integers or strings; distinct strings.
    most_rows, most_entries
        Of a shard.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from corrvae.shards import open_shards
    >>> with TemporaryDirectory() as folder:
    ...     write_shards(f"{folder}/x", (np.full((2, 3), k) for k in range(3)), n_columns=3)
    ...     open_shards(f"{folder}/x").matrix
    ShardedMatrix(6 rows, 3 columns, 12 entries, 1 shards)
    """
    target = Path(os.path.realpath(path))
    with ExitStack() as stack:
        stack.enter_context(naming(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = stack.enter_context(draft_of(target))
        shards = draft / SHARDS
        shards.mkdir()
        with ShardWriter(shards, most_rows=most_rows, most_entries=most_entries) as writer:
            for block in blocks:
                writer.append(_canonical(block, n_columns))
        finish_shards(target, shards, writer, n_columns, ids, names)


def finish_shards(
    target: Path,
    shards: Path,
    writer: ShardWriter,
    n_columns: int,
    ids: Shaped[np.ndarray, " rows"] | None,
    names: Sequence[str] | None,
) -> None:
    """Make a folder of shards that have been written beside it.

    Parameters
    ----------
    target
        The folder to be.
    shards
        Where the shards are; they move.
    writer
        What wrote them.
    n_columns, ids, names
        As in `write_shards`.
    """
    if not writer.n_rows:
        raise ValueError("there are no rows to write")
    for what, given, count in (("ids", ids, writer.n_rows), ("names", names, n_columns)):
        if given is not None and len(given) != count:
            raise ValueError(f"there are {len(given):,} {what} for {count:,}")
    document = {"rows": writer.n_rows, "columns": n_columns, "entries": writer.n_entries, "shards": writer.sizes}
    write_folder(
        target,
        kind=KIND,
        version=VERSION,
        document=document,
        tables=_tables(ids, names),
        folders={SHARDS: lambda place: shards.rename(place)},
    )


def _tables(ids: np.ndarray | None, names: Sequence[str] | None) -> "dict[str, pyarrow.Table]":
    import pyarrow as pa

    tables: dict[str, Any] = {}
    if ids is not None:
        tables[IDS] = pa.table({"id": pa.array(ids if ids.dtype.kind == "i" else ids.tolist())})
    if names is not None:
        tables[ITEMS] = pa.table({"item": pa.array(list(names), pa.string())})
    return tables


def _canonical(block: sparse.csr_array | np.ndarray, n_columns: int) -> sparse.csr_array:
    if block.ndim != 2 or block.shape[1] != n_columns:  # pyright: ignore[reportOptionalSubscript]
        raise ValueError(f"a block of shape {block.shape} has not {n_columns} columns")
    rows = sparse.csr_array(block, dtype=np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
