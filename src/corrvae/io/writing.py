"""Tables of results into files: CSV, TSV, Parquet or JSON by the ending of the name; whole or not at all."""

import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from corrvae.errors import FolderError
from corrvae.io.folder import folder_errors

Format = Literal["csv", "tsv", "parquet", "json"]
_FORMATS: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".json": "json"}
_BLOCK_ROWS = 1 << 16


def ids_as_column(ids: np.ndarray) -> pa.Array:
    """Return ids as a column of a table; integers beside strings, as of points and their groups, become strings."""
    listed = ids.tolist()
    if {type(value) for value in listed} == {int, str}:
        listed = [str(value) for value in listed]
    return pa.array(listed)


def write_table(table: pa.Table, path: str | os.PathLike[str], *, file_format: Format | None = None) -> None:
    """Write a table to a file, which is replaced when all is written, or for "-" to the standard output.

    Text has nine significant digits of a double and as many of a single as distinguish it. In JSON a table is a list
    with an object for each row, and what is not finite is null. The format is that of the ending of the name, otherwise
    CSV.
    """
    if os.fspath(path) == "-":
        _write_text(table, file_format or "csv", sys.stdout)
        return
    chosen = file_format or _FORMATS.get(Path(path).suffix.lower())
    if chosen is None:
        raise FolderError(Path(path), f"the name must end in one of {', '.join(_FORMATS)}")
    with replace_file(path) as stream:
        if chosen == "parquet":
            parquet.write_table(table, stream)
        else:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            _write_text(table, chosen, text)
            text.detach()  # flushes, and leaves the stream open


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a stream of bytes beside a file, which replaces the file if the block ends well; otherwise it is as before.

    A device or a pipe is written to directly.
    """
    place = Path(path).resolve()  # a link keeps pointing to its file
    with folder_errors(place):
        if not place.parent.is_dir():
            raise FolderError(place.parent, "there is no such folder; make it first")
        if place.exists() and not place.is_file():
            with place.open("wb") as stream:
                yield stream
            return
        fresh = place.with_name(f".{place.name}.{os.getpid()}.new")
        try:
            with fresh.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(place)
        finally:
            fresh.unlink(missing_ok=True)


def _write_text(table: pa.Table, file_format: Format, stream: Any) -> None:
    blocks = (table.slice(begin, _BLOCK_ROWS).columns for begin in range(0, table.num_rows, _BLOCK_ROWS))
    if file_format == "json":
        between = "[\n "
        for columns in blocks:
            for row in zip(*map(_plain, columns), strict=True):
                document = dict(zip(table.column_names, row, strict=True))
                stream.write(between + json.dumps(document, ensure_ascii=False))
                between = ",\n "
        stream.write("\n]\n" if table.num_rows else "[]\n")
        return
    writer = csv.writer(stream, delimiter="\t" if file_format == "tsv" else ",", lineterminator="\n")
    writer.writerow(table.column_names)
    for columns in blocks:
        writer.writerows(zip(*map(_spell, columns), strict=True))


def _spell(column: pa.ChunkedArray) -> list[Any]:
    """Return values as text has them; a missing value is an empty field."""
    if not pa.types.is_floating(column.type):
        return column.to_pylist()
    if column.type == pa.float32():
        spelled = column.to_numpy().astype(np.str_).tolist()
    else:
        spelled = [f"{value:.9g}" for value in column.to_numpy().tolist()]
    return [None if missing else text for text, missing in zip(spelled, column.is_null().to_pylist(), strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return values as JSON has them, numbers with the digits that text has."""
    if not pa.types.is_floating(column.type):
        return column.to_pylist()
    numbers = (None if text is None else float(text) for text in _spell(column))
    return [number if number is not None and math.isfinite(number) else None for number in numbers]
