"""Long tables: a row for each data point and item, such as ratings."""

import warnings

import numpy as np
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading.features import Features
from corrvae.reading.keys import Coder, as_ids
from corrvae.reading.layouts import long_positions
from corrvae.reading.tables import Kind, TableFile


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
    positions = long_positions(table, id_position)
    if len(positions) < 2:
        raise DataFileError(table.path, "a long table has a column of ids and one of items; this one has 1 column")
    kinds: list[Kind] = ["key", "key", "number"]
    of_ids, of_items = Coder(), Coder(names)
    rows, columns, values = [], [], []
    n_read = n_unknown = 0
    for batch in table.batches(positions, kinds[: len(positions)]):
        row, column = of_ids.code(batch[0]), of_items.code(batch[1])
        value = _values(table, batch[2].to_numpy(zero_copy_only=False), n_read) if len(batch) > 2 else None
        n_read += len(row)
        known = column >= 0
        n_unknown += len(row) - int(known.sum())
        rows.append(row[known])
        columns.append(column[known])
        values.append(np.ones(int(known.sum()), dtype=np.float32) if value is None else value[known])
    if not n_read:
        raise DataFileError(table.path, "there are no rows in it")
    items = of_items.strings if names is None else names
    ids = as_ids(of_ids.strings)
    # each list goes before the next is joined: together they may be gigabytes
    joined = []
    for parts in (values, rows, columns):
        joined.append(np.concatenate(parts))
        parts.clear()
    entries = sparse.coo_array((joined[0], (joined[1], joined[2])), shape=(len(ids), len(items)))
    n_kept = entries.nnz
    matrix = sparse.csr_array(entries)
    _tell(table, n_kept - matrix.nnz, n_unknown, has_values=len(positions) > 2)
    matrix.eliminate_zeros()
    return Features(matrix, ids, tuple(items))


def _values(table: TableFile, numbers: np.ndarray, begin: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        values = numbers.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        found = numbers[wrong[0]]
        what = "no value" if np.isnan(found) else f"the value {found:g}, which is infinite or too large"
        raise DataFileError(table.path, f"{table.place(begin + int(wrong[0]))} has {what}")
    return values


def _tell(table: TableFile, n_repeats: int, n_unknown: int, *, has_values: bool) -> None:
    if n_repeats and has_values:
        rows = "1 row repeats" if n_repeats == 1 else f"{n_repeats:,} rows repeat"
        warnings.warn(f"{table.path}: {rows} an id and item; values of the same two are added up", stacklevel=4)
    if n_unknown:
        rows = "1 row is" if n_unknown == 1 else f"{n_unknown:,} rows are"
        warnings.warn(f"{table.path}: {rows} about items that the model does not know, and left out", stacklevel=4)
