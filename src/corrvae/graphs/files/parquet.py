"""Edges from Parquet."""

from io import SEEK_END, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corrvae.errors import DataFileError
from corrvae.graphs.files.coding import code_strings
from corrvae.graphs.files.reading import EdgeTable, FileLayout, column_positions, open_data
from corrvae.graphs.pairs import CodedPairs, code_pairs
from corrvae.parquet import decoded, open_checked
from corrvae.unpacking import Unpacked

if TYPE_CHECKING:
    import pyarrow


def read_parquet(path: Path, layout: FileLayout) -> EdgeTable:
    """Read the edges of a Parquet file, which may be wrapped in gzip."""
    import pyarrow as pa

    with open_data(path) as stream:
        # Parquet is read from its end, which a compressed stream cannot do
        source = BytesIO(stream.read()) if isinstance(stream, Unpacked) else stream
        try:
            size = source.seek(0, SEEK_END)
            file = open_checked(source, size)
            names = file.schema_arrow.names
            if len(names) < 2:
                raise DataFileError(path, f"a file of edges has two columns of ids; this one has {names}")
            positions = column_positions(path, layout.wanted, names, len(names))
            table = decoded(file.read(columns=[names[k] for k in positions]), size)
        except DataFileError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataFileError(path, f"cannot be read as Parquet ({error})") from error
    columns = [_plain(table.column(names[k])) for k in positions]
    for k, column in zip(positions, columns, strict=True):
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise DataFileError(path, f"{_row(row)} has no value in column {names[k]!r}")
    for k, column in zip(positions[:2], columns[:2], strict=True):
        _check_kind(path, names[k], column, layout)
        try:
            column.validate(full=True)  # that strings are UTF-8, which Arrow takes the file's word for
        except pa.ArrowException as error:
            raise DataFileError(path, f"column {names[k]!r} is damaged ({error})") from error
    try:
        coded = _code(columns[:2], layout)
    except pa.ArrowException as error:
        raise DataFileError(path, f"ids must fit in 64 bits ({error})") from error
    return EdgeTable(coded, _numbers(path, names, positions, columns), _row)


def _plain(column: "pyarrow.ChunkedArray") -> "pyarrow.ChunkedArray":
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _code(columns: "list[pyarrow.ChunkedArray]", layout: FileLayout) -> CodedPairs:
    import pyarrow as pa

    if layout.id_kind != "string" and all(pa.types.is_integer(column.type) for column in columns):
        return code_pairs(np.column_stack([column.cast(pa.int64()).to_numpy() for column in columns]))
    return code_strings(columns)


def _check_kind(path: Path, name: str, column: "pyarrow.ChunkedArray", layout: FileLayout) -> None:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        fits = layout.id_kind != "integer"
    else:
        # a column without rows may have no type
        fits = pa.types.is_integer(kind) or not len(column)
    if not fits:
        wanted = "integers" if layout.id_kind == "integer" else "integers or strings"
        raise DataFileError(path, f"column {name!r} holds {kind}; ids are {wanted}")


def _numbers(
    path: Path, names: list[str], positions: list[int], columns: "list[pyarrow.ChunkedArray]"
) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    import pyarrow as pa

    if len(columns) < 3:
        return None
    try:
        return columns[2].cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise DataFileError(
            path, f"column {names[positions[2]]!r} holds {columns[2].type}; conductances are numbers"
        ) from error


def _row(position: int) -> str:
    return f"row {position} (from 0)"
