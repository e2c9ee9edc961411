"""Wide tables: a row for each data point, a column for each feature."""

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading.features import Features
from corrvae.reading.keys import as_ids, texts_of
from corrvae.reading.tables import Kind, TableFile

if TYPE_CHECKING:
    import pyarrow

# A share of numbers other than zero up to which a table is kept sparse: CSR takes 8 bytes for each, an array 4 a cell.
_SPARSE_SHARE = 0.2
_DECIMAL = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?")


def read_wide(table: TableFile, id_position: int, names: tuple[str, ...] | None) -> Features:
    """Read a wide table.

    Parameters
    ----------
    table
        The file.
    id_position
        Where its ids are.
    names
        The columns that the result is to have; ``None``: all but that of the ids.
    """
    table.check_names()
    positions = _positions(table, id_position, names)
    kinds: list[Kind] = ["key", *("number" for _ in positions)]
    pieces, ids = [], []
    is_sparse: bool | None = None
    for id_column, *columns in table.batches([id_position, *positions], kinds):
        piece = _block(columns)
        _refuse_infinite(table, piece, positions, len(ids))
        if is_sparse is None:
            is_sparse = bool(np.count_nonzero(piece) <= _SPARSE_SHARE * piece.size)
        pieces.append(sparse.csr_array(piece) if is_sparse else piece)
        ids.extend(string.strip() for string in texts_of(id_column))
    if not ids:
        raise DataFileError(table.path, "there are no rows in it")
    _check_ids(table, id_position, ids)
    found = None if table.names is None else tuple(table.names[k] for k in positions)
    matrix = sparse.csr_array(sparse.vstack(pieces, format="csr")) if is_sparse else np.concatenate(pieces)
    return Features(matrix, as_ids(ids), found if names is None else names)


def _positions(table: TableFile, id_position: int, names: tuple[str, ...] | None) -> list[int]:
    others = [k for k in range(table.n_columns) if k != id_position]
    if not others:
        raise DataFileError(table.path, "it has ids, but no column of features")
    if names is None:
        for k in others:
            if table.names is not None and not table.names[k]:
                raise DataFileError(table.path, f"column {k} (from 0) has no name")
        return others
    if table.names is None:
        if len(others) != len(names):
            raise DataFileError(
                table.path,
                f"it has {len(others):,} columns of features without names, where the model has {len(names):,}",
            )
        return others
    place_of = {table.names[k]: k for k in others}
    missing = [name for name in names if name not in place_of]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DataFileError(table.path, f"there is no column {missing[0]!r}{more}, which the model was trained with")
    if len(others) > len(names):
        spare = len(others) - len(names)
        columns = "1 column that the model does not know is" if spare == 1 else f"{spare:,} columns unknown to it are"
        warnings.warn(f"{table.path}: the model reads {len(names):,} columns; {columns} left out", stacklevel=4)
    return [place_of[name] for name in names]


def _block(columns: "list[pyarrow.Array]") -> Float[np.ndarray, "rows columns"]:
    block = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    with np.errstate(over="ignore"):  # what is too large is refused by name
        for k, column in enumerate(columns):
            block[:, k] = column.to_numpy(zero_copy_only=False)
    return block


def _refuse_infinite(table: TableFile, piece: np.ndarray, positions: list[int], begin: int) -> None:
    wrong = np.argwhere(np.isinf(piece))
    if len(wrong):
        row, column = (int(index) for index in wrong[0])
        raise DataFileError(
            table.path,
            f"{table.place(begin + row)} has a number in {table.name_of(positions[column])} that is infinite or too "
            "large (features are kept in 32 bits); rescale the features",
        )


def _check_ids(table: TableFile, id_position: int, ids: list[str]) -> None:
    if all(map(_DECIMAL.fullmatch, ids)):
        raise DataFileError(
            table.path,
            f"{table.name_of(id_position)} is taken for the ids, but holds numbers such as {ids[0]}; name the column "
            "of ids (--id-column), or put one before it",
        )
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        row = next(k for k, value in enumerate(ids) if first.setdefault(value, k) != k)
        before = table.place(first[ids[row]])
        raise DataFileError(
            table.path,
            f"{table.place(row)} has the id {ids[row]!r}, which {before} has too; if this is a table with a row for "
            "each id and item, read it as a long one (--layout long)",
        )
