"""Long tables of any size made into shards, by streaming."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from corrvae.drafts import draft_of, naming, sweep
from corrvae.errors import DataFileError, FolderError
from corrvae.monitor import DONE, Monitor, watch
from corrvae.reading.keys import Coder, as_ids
from corrvae.reading.layouts import check_layout, find_layout, long_positions, tell_long
from corrvae.reading.long import has_values, long_batches, tell_long_entries
from corrvae.reading.opening import open_table
from corrvae.reading.tables import TableFile
from corrvae.shards.folder import is_shard_folder
from corrvae.shards.sorting import Spool, sorted_rows
from corrvae.shards.writing import MOST_ENTRIES, MOST_ROWS, ShardWriter, finish_shards


@final
@dataclass(frozen=True)
class ShardedTable:
    """What was made of long tables.

    Attributes
    ----------
    path
        The folder.
    n_rows, n_columns, n_entries, n_shards
        Ids, items, entries other than zero, and shards.

    Examples
    --------
    >>> ShardedTable(Path("shards"), 10, 4, 25, 1).n_entries
    25
    """

    path: Path
    n_rows: int
    n_columns: int
    n_entries: int
    n_shards: int


def shard_tables(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    id_column: str | None = None,
    layout: str = "auto",
    overwrite: bool = False,
    most_rows: int = MOST_ROWS,
    most_entries: int = MOST_ENTRIES,
    progress: bool | None = None,
    say: Callable[[str], None] | None = None,
) -> ShardedTable:
    r"""Make a folder of shards of long tables, which `read_features` opens without reading it into memory.

    The result is what `read_features` makes of the tables one after the other: ids and items in the order in which they
    are first named, and values of the same two added up. Memory is taken for ids, items and a number for each row, and
    some 500 MB besides, however many entries there are. While it works, the disk holds up to 24 bytes for each row of
    the tables; in the end 8 for each entry.

    Parameters
    ----------
    paths
        Files, in text or Parquet, and folders of them, whose files are taken in the order of their names.
    out
        The folder to make, whole or not at all.
    id_column
        The name of the column of ids; without it, the first column.
    layout
        "long", or "auto" to refuse tables that look wide.
    overwrite
        Whether a folder of shards that is there is replaced.
    most_rows, most_entries
        Of a shard.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.
    say
        Takes a sentence on how the columns are read.

    Examples
    --------
    >>> import tempfile
    >>> from corrvae.reading import read_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ratings.csv")
    ...     _ = path.write_text("user,item,stars\nann,tea,5\nbob,tea,2\nann,coffee,1\n")
    ...     made = shard_tables([path], Path(folder, "shards"))
    ...     features = read_features(made.path)
    >>> features.matrix, features.ids.tolist(), features.names
    (ShardedMatrix(2 rows, 2 columns, 3 entries, 1 shards), ['ann', 'bob'], ('tea', 'coffee'))
    """
    target = Path(os.path.realpath(out))
    check_layout(layout)
    if layout == "wide":
        raise ValueError("shards are made of long tables; layout must be auto or long")
    if most_rows < 1 or most_entries < 1:
        raise ValueError(f"a shard has a row and an entry at least, not {most_rows} and {most_entries}")
    _refuse_to_begin(target, overwrite)
    tables = _open_tables([Path(path) for path in paths], id_column, layout)
    if say is not None:
        say(f"{tables[0].path}: {tell_long(tables[0], tables[0].id_position(id_column))}")
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        # made here and not where the work is done, so that it goes after Ctrl-C too
        with draft_of(target) as draft:
            job = _Job(draft, tables, id_column, most_rows, most_entries)
            watch(job.run, progress=progress)
            finish_shards(target, job.shards, job.writer, len(job.items), job.ids, job.items)
    has = has_values(tables[0], tables[0].id_position(id_column))
    tell_long_entries(tables[0].path if len(tables) == 1 else target, job.n_repeats, 0, has_values=has)
    return ShardedTable(target, len(job.ids), len(job.items), job.writer.n_entries, len(job.writer.sizes))


@final
class _Job:
    """Reads tables and writes shards, in a folder of its own."""

    def __init__(
        self, draft: Path, tables: Sequence[TableFile], id_column: str | None, most_rows: int, most_entries: int
    ) -> None:
        self._draft, self._tables, self._id_column = draft, tables, id_column
        self.shards = draft / "shards"
        self.writer = ShardWriter(self.shards, most_rows=most_rows, most_entries=most_entries)
        self.n_repeats = 0

    def run(self, monitor: Monitor) -> None:
        spool = Spool(self._draft)
        try:
            self._read(spool, monitor)
        finally:
            spool.close()
        self.shards.mkdir()
        with self.writer:
            for block in sorted_rows(spool, (len(self.ids), len(self.items)), monitor):
                self.writer.append(block.matrix)
                self.n_repeats += block.n_repeats

    def _read(self, spool: Spool, monitor: Monitor) -> None:
        of_ids, of_items = Coder(), Coder()
        for table in self._tables:
            monitor.phase(f"reading {table.path.name}")
            for batch in long_batches(table, table.id_position(self._id_column), of_ids, of_items):
                monitor.check()
                spool.append(batch.rows, batch.columns, batch.values)
                monitor.control[DONE] += batch.n_read
        if not spool.n_entries:
            raise DataFileError(self._tables[0].path, "there are no rows in it")
        self.ids, self.items = as_ids(of_ids.strings), of_items.strings


def _refuse_to_begin(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_shard_folder(target):
        raise FolderError(target, "there is something else of this name; choose another")
    if not overwrite:
        raise FolderError(target, "holds shards already; --overwrite replaces them")


def _open_tables(paths: Sequence[Path], id_column: str | None, layout: str) -> list[TableFile]:
    """Open all files before any is read, and refuse those that are not long tables of the same columns."""
    tables: list[TableFile] = []
    for path in _files(paths):
        table = open_table(path, id_column)
        position = table.id_position(id_column)
        if layout == "auto" and find_layout(table, position) == "wide":
            raise DataFileError(
                path,
                "it looks like a wide table, and shards are made of long ones, with the columns id, item and value; "
                "--layout long reads it as one",
            )
        found = _columns(table, position)
        if tables and found != (expected := _columns(tables[0], tables[0].id_position(id_column))):
            raise DataFileError(
                path, f"its columns are {', '.join(found)}; those of {tables[0].path} are {', '.join(expected)}"
            )
        tables.append(table)
    if not tables:
        raise ValueError("there are no tables to make shards of")
    return tables


def _columns(table: TableFile, id_position: int) -> list[str]:
    return [table.name_of(k) for k in long_positions(table, id_position)]


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        # what begins so is no data: programs that write parts leave such files behind
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
        if not files:
            raise DataFileError(path, "there are no files in this folder")
        yield from files
