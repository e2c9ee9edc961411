"""Tables of features, wide or long.

A wide table has a row for each data point and a column for each feature. A long table has a row for each point and
item, with the columns id, item and, if it is there, value.
"""

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.io.arrays import Features
from corrvae.io.columns import ITEM_NAMES, Numbering, Table, as_ids, count, looks_like, stem

Layout = Literal["auto", "wide", "long"]
Missing = Literal["error", "mask"]

# The share of cells other than zero up to which a wide table is kept sparse: CSR takes 8 bytes for each of these, an
# array 4 bytes for every cell.
_SPARSE_SHARE = 0.2
# A long table has an id, an item, perhaps a value and perhaps a time.
_MOST_LONG_COLUMNS = 4
# What the values of a long table look like.
_VALUES = ("ids", "numbers")
_MASK = 'fill it, or choose missing="mask", which leaves empty cells out of training'
_TIME_NAMES = {"time", "timestamp", "date", "datetime", "day", "year"}
# The share of rows whose id was there before, below which repeats may be mistakes in a wide table.
_LEAST_REPEATED = 0.1

_logger = logging.getLogger("corrvae.io")


def open_table(path: Path, id_column: str | None, layout: Layout, names: list[str] | None) -> tuple[Table, bool]:
    """Open a table with its ids in a given column; return it and whether it is long."""
    table = Table(path, header=None if id_column is None else True)
    if id_column is not None:
        table.id_position = table.position(id_column)
    return table, _is_long(table, names) if layout == "auto" else layout == "long"


def _is_long(table: Table, names: list[str] | None) -> bool:
    if (names is not None and set(names) <= set(table.names or ())) or table.n_columns > _MOST_LONG_COLUMNS:
        return False
    item = table.others[0]
    items = [row[item] for row in table.sample]
    kind = looks_like(items)
    if (table.names is not None and stem(table.names[item]) in ITEM_NAMES) or (kind == "words" and all(items)):
        return True
    if kind not in ("ids", "times"):
        return False
    if names is not None and not set(items).isdisjoint(names):
        return True
    share = _repeated_share(table)
    if share == 0:
        return False
    if share >= _LEAST_REPEATED and sum(kind in _VALUES for kind in _kinds(table)[1:]) <= 1:
        return True
    raise DataFileError(
        table.path,
        f"ids repeat in {table.name(table.id_position)} and {table.name(item)} holds numbers, so the table may be wide "
        '(a row for each id) with rows too many, or long (a row for each id and item); choose layout="wide" or "long"',
    )


def _repeated_share(table: Table) -> float:
    """Return the share of rows whose id was there before: in the first rows if it is large there, otherwise in all."""
    ids = [row[table.id_position] for row in table.sample]
    if ids and len(set(ids)) <= (1 - _LEAST_REPEATED) * len(ids):
        return 1 - len(set(ids)) / len(ids)
    of_ids, n_rows = Numbering(), 0
    for (column,) in table.batches([table.id_position]):
        of_ids.number(column)
        n_rows += len(column)
    return 1 - len(of_ids) / max(1, n_rows)


def _kinds(table: Table) -> list[str]:
    """Return what the columns but that of the ids look like; one that is named after time holds times."""
    kinds = [looks_like([row[k] for row in table.sample]) for k in table.others]
    names = [""] * len(kinds) if table.names is None else [table.names[k] for k in table.others]
    return ["times" if stem(name) in _TIME_NAMES else kind for name, kind in zip(names, kinds, strict=True)]


def _value_position(table: Table) -> list[int]:
    """Return where a long table has its values, if anywhere; a word among numbers is found when they are read."""
    for k, kind in zip(table.others[1:], _kinds(table)[1:], strict=True):
        if kind in _VALUES or (kind == "words" and any(looks_like([row[k]]) != "words" for row in table.sample)):
            return [k]
    return []


# Wide tables


def read_wide(table: Table, names: list[str] | None, missing: Missing) -> Features:
    """Read a wide table; it is kept sparse if most of its first rows' cells are zero."""
    positions = _feature_positions(table, names)
    pieces: list[Any] = []
    ids: list[str] = []
    is_sparse = False
    for id_column, *columns in table.batches([table.id_position], positions):
        piece = _checked_numbers(table, columns, positions, len(ids), missing=missing == "mask", cure=_MASK)
        if not pieces:
            is_sparse = bool(np.count_nonzero(piece) <= _SPARSE_SHARE * piece.size)
        pieces.append(sparse.csr_array(piece) if is_sparse else piece)
        ids.extend(id_column.to_pylist())
    if not ids:
        raise DataFileError(table.path, "there are no rows in it")
    _check_ids(table, ids)
    matrix = sparse.csr_array(sparse.vstack(pieces, format="csr")) if is_sparse else np.concatenate(pieces)
    found = names if names is not None or table.names is None else [table.names[k] for k in positions]
    return Features(matrix, as_ids(ids), found)


def _feature_positions(table: Table, names: list[str] | None) -> list[int]:
    """Return the positions of the columns of features, in the order of `names` if they are given."""
    others = table.others
    found = None if table.names is None else [table.names[k] for k in others]
    if found is not None and len(set(found)) < len(found):
        repeated = next(name for k, name in enumerate(found) if name in found[:k])
        raise DataFileError(table.path, f"there is more than one column named {repeated!r}")
    places = find_columns(table.path, found, len(others), names)
    if len(places) < len(others):
        left = count(len(others) - len(places), "column")
        _warn(f"{table.path}: {left} that the model was not trained with left out")
    return [others[place] for place in places]


def _checked_numbers(
    table: Table, columns: list[Any], positions: list[int], begin: int, *, missing: bool, cure: str
) -> np.ndarray:
    """Return columns side by side in single precision; raise if a cell is empty, unless it may be, or infinite."""
    piece = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    with np.errstate(over="ignore"):
        for k, column in enumerate(columns):
            piece[:, k] = column.to_numpy(zero_copy_only=False)
    for row, column in np.argwhere(np.isinf(piece) if missing else ~np.isfinite(piece))[:1].tolist():
        problem = "holds a number that is infinite or too large for 32 bits; rescale the features"
        if np.isnan(piece[row, column]):
            problem = f"is empty; {cure}"
        raise table.error(begin + row, f"{table.name(positions[column])} {problem}")
    return piece


def _check_ids(table: Table, ids: list[str]) -> None:
    if looks_like(ids) == "numbers" and all("." in value for value in ids):
        raise DataFileError(
            table.path,
            f"{table.name(table.id_position)} should hold the ids, but holds numbers such as {ids[0]}; choose another "
            "id_column, or put a column of ids first",
        )
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        row = next(k for k, value in enumerate(ids) if first.setdefault(value, k) != k)
        problem = f'the id {ids[row]!r} is there twice; a table with a row for each id and item needs layout="long"'
        raise table.error(row, problem)


# Long tables


def long_batches(
    table: Table, of_ids: Numbering, of_items: Numbering
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, columns (-1: an item that is not wanted) and values of a long table; without values, each is 1."""
    places = _value_position(table)
    n_read = 0
    for batch in table.batches([table.id_position, table.others[0]], places):
        rows, columns = of_ids.number(batch[0]), of_items.number(batch[1])
        values = np.ones(len(rows), dtype=np.float32)
        if places:
            cure = "each row needs a value"
            values = _checked_numbers(table, batch[2:], places, n_read, missing=False, cure=cure)[:, 0]
        n_read += len(rows)
        yield rows, columns, values
    if not n_read:
        raise DataFileError(table.path, "there are no rows in it")


def read_long(table: Table, names: list[str] | None) -> Features:
    """Read a long table; points and items are in the order in which the file first names them."""
    of_ids, of_items = Numbering(), Numbering(names)
    rows, columns, values = map(np.concatenate, zip(*long_batches(table, of_ids, of_items), strict=True))
    is_known = columns >= 0
    matrix = sparse.coo_array(
        (values[is_known], (rows[is_known], columns[is_known])), shape=(len(of_ids), len(of_items))
    ).tocsr()  # adds up repeats
    n_known = int(np.count_nonzero(is_known))
    report_long(table, n_known - matrix.nnz, len(rows) - n_known)
    matrix.eliminate_zeros()
    return Features(matrix, as_ids(of_ids.strings), of_items.strings)


def report_long(table: Table, n_repeats: int, n_unknown: int) -> None:
    """Log how a long table was read; warn of rows that were added up or left out."""
    positions = [table.id_position, table.others[0], *_value_position(table)]
    roles = [f"{part}: {table.name(k)}" for part, k in zip(("ids", "items", "values"), positions, strict=False)]
    rest = [table.name(k) for k in range(table.n_columns) if k not in positions]
    unread = f"; not read: {', '.join(rest)}" if rest else ""
    _logger.info("%s: read as a long table (%s%s)", table.path, ", ".join(roles), unread)
    if n_repeats and len(positions) > 2:
        _warn(f"{table.path}: {count(n_repeats, 'row')} with an id and item that were there before; values add up")
    if n_unknown:
        _warn(f"{table.path}: {count(n_unknown, 'row')} with items that the model was not trained with left out")


def find_columns(path: Path, found: list[str] | None, n_found: int, names: list[str] | None) -> list[int]:
    """Return where a table has the columns that a model was trained with; all of them if it is not known."""
    if names is None or found is None:
        if names is not None and n_found != len(names):
            has = count(n_found, "column")
            raise DataFileError(
                path, f"it has {has} of features without names; the model was trained with {len(names):,}"
            )
        return list(range(n_found))
    place = {name: k for k, name in enumerate(found)}
    absent = [name for name in names if name not in place]
    if absent:
        more = f" and {len(absent) - 1:,} more" if len(absent) > 1 else ""
        raise DataFileError(path, f"there is no column {absent[0]!r}{more}, which the model was trained with")
    return [place[name] for name in names]


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UserWarning, stacklevel=5)
