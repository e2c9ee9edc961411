"""Long tables: a row for each data point and item, such as ratings."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.errors import DataFileError
from corrvae.reading.features import Features
from corrvae.reading.keys import Coder, as_ids
from corrvae.reading.layouts import long_positions
from corrvae.reading.tables import Kind, TableFile
from corrvae.shards.entries import add_up


@final
@dataclass(frozen=True, eq=False)
class LongBatch:
    """Some rows of a long table, as entries of a matrix.

    Attributes
    ----------
    rows, columns, values
        The entries.
    n_read
        Rows of the table that they are from, with those about items that are not looked for.
    """

    rows: Int[np.ndarray, " entries"]
    columns: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]
    n_read: int


def long_batches(table: TableFile, id_position: int, of_ids: Coder, of_items: Coder) -> Iterator[LongBatch]:
    """Read a long table a batch at a time; see `read_long`.

    Parameters
    ----------
    table
        The file.
    id_position
        Where its ids are.
    of_ids, of_items
        Number ids and items; -1 is an item that is not looked for.
    """
    positions = long_positions(table, id_position)
    if len(positions) < 2:
        raise DataFileError(table.path, "a long table has a column of ids and one of items; this one has 1 column")
    kinds: list[Kind] = ["key", "key", "number"]
    n_read = 0
    for batch in table.batches(positions, kinds[: len(positions)]):
        rows, columns = of_ids.code(batch[0]), of_items.code(batch[1])
        numbers = batch[2].to_numpy(zero_copy_only=False) if len(batch) > 2 else None
        values = np.ones(len(rows), dtype=np.float32) if numbers is None else _values(table, numbers, n_read)
        n_read += len(rows)
        known = columns >= 0
        yield LongBatch(rows[known], columns[known], values[known], len(rows))


def read_long(table: TableFile, id_position: int, names: tuple[str, ...] | None) -> Features:
    """Read a long table a batch at a time, into numbers for ids and items (4 bytes each) and values (4 bytes).

    Data points and items are in the order in which the file first names them. Values of the same point and item add
    up; without a column of values each row counts 1.

    Parameters
    ----------
    table
        The file.
    id_position
        Where its ids are; the next two columns hold items and values.
    names
        The items that are the columns of the result; others are left out. ``None``: all there are.
    """
    of_ids, of_items = Coder(), Coder(names)
    rows, columns, values = [], [], []
    n_read = 0
    for batch in long_batches(table, id_position, of_ids, of_items):
        n_read += batch.n_read
        for parts, part in ((rows, batch.rows), (columns, batch.columns), (values, batch.values)):
            parts.append(part)
    if not n_read:
        raise DataFileError(table.path, "there are no rows in it")
    items = of_items.strings if names is None else names
    ids = as_ids(of_ids.strings)
    # each list goes before the next is joined: together they may be gigabytes
    joined = []
    for parts in (rows, columns, values):
        joined.append(np.concatenate(parts))
        parts.clear()
    n_unknown = n_read - len(joined[0])
    added = add_up(joined[0], joined[1], joined[2], (len(ids), len(items)))
    tell_long_entries(table.path, added.n_repeats, n_unknown, has_values=has_values(table, id_position))
    return Features(added.matrix, ids, tuple(items))


def has_values(table: TableFile, id_position: int) -> bool:
    """Whether a long table has a column of values."""
    return len(long_positions(table, id_position)) > 2


def _values(table: TableFile, numbers: np.ndarray, begin: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        values = numbers.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        found = numbers[wrong[0]]
        what = "no value" if np.isnan(found) else f"the value {found:g}, which is infinite or too large"
        raise DataFileError(table.path, f"{table.place(begin + int(wrong[0]))} has {what}")
    return values


def tell_long_entries(path: Path, n_repeats: int, n_unknown: int, *, has_values: bool) -> None:
    """Warn of rows that were added up, and of those that were left out."""
    if n_repeats and has_values:
        rows = "1 row repeats" if n_repeats == 1 else f"{n_repeats:,} rows repeat"
        warnings.warn(f"{path}: {rows} an id and item; values of the same two are added up", stacklevel=4)
    if n_unknown:
        rows = "1 row is" if n_unknown == 1 else f"{n_unknown:,} rows are"
        warnings.warn(f"{path}: {rows} about items that the model does not know, and left out", stacklevel=4)
