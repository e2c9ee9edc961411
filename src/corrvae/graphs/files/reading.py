"""Edges from files: which kind of file it is, and errors that name the file and the line."""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from corrvae.errors import DataFileError, MissingDataFileError
from corrvae.graphs.canonical import CanonicalEdges, Direction, canonicalize, pair_conductances
from corrvae.graphs.files.lines import LongLineError
from corrvae.graphs.pairs import CodedPairs, EdgeError, place_pairs
from corrvae.regular import open_regular
from corrvae.unpacking import Unpacked

GZIP_MAGIC, PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class FileLayout:
    """What the caller says about a file's columns; None where the file is to tell. See `CorrelationGraph.from_file`."""

    columns: Sequence[str | int] | None = None
    conductance: str | int | None = None
    header: bool | None = None
    delimiter: str | None = None
    id_kind: Literal["integer", "string"] | None = None

    def __post_init__(self) -> None:
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) != 2):
            raise ValueError(f"columns must be two names or positions, not {self.columns!r}")
        if self.columns is not None and self.columns[0] == self.columns[1]:
            raise ValueError(f"columns must be two different columns, not {self.columns[0]!r} twice")
        if self.id_kind not in (None, "integer", "string"):
            raise ValueError(f'id_kind must be None, "integer" or "string", not {self.id_kind!r}')
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ValueError(f"delimiter must be one character, not {self.delimiter!r}")

    @property
    def wanted(self) -> list[str | int]:
        """The columns to read: two of ids, and that of conductances if there is one."""
        return [*(self.columns or (0, 1)), *([] if self.conductance is None else [self.conductance])]


@dataclass(frozen=True)
class EdgeTable:
    """What a file held, with `place` to say where in the file the k-th pair stands.

    ``headless`` tells that no header was seen where there could be one, so that the first pair may be names.
    """

    coded: CodedPairs
    conductances: Float[np.ndarray, " pairs"] | None
    place: Callable[[int], str]
    headless: bool = False


def read_file(
    path: str | os.PathLike[str],
    layout: FileLayout,
    vertices: Iterable[Any] | None,
    direction: Direction,
    keep_isolated: bool,
) -> CanonicalEdges:
    """Read a file of edges; see `CorrelationGraph.from_file`."""
    from corrvae.graphs.files.parquet import read_parquet
    from corrvae.graphs.files.text import read_text

    path = Path(path)
    # what vertices lists must not depend on how often it is read
    vertices = list(vertices) if isinstance(vertices, Iterator) else vertices
    with open_data(path) as stream:
        magic = stream.read(len(PARQUET_MAGIC))
    if not magic:
        raise DataFileError(path, "the file is empty")
    table = (read_parquet if magic == PARQUET_MAGIC else read_text)(path, layout)
    try:
        placed = place_pairs(table.coded, vertices)
        values = pair_conductances(table.conductances, placed)
        return canonicalize(placed, values, direction, keep_isolated or vertices is not None)
    except EdgeError as error:
        raise DataFileError(path, f"{table.place(error.position)}: {error.problem}") from error


@contextmanager
def open_data(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading bytes, through gzip when it is compressed, with its troubles as `DataFileError`.

    A compressed one comes as `Unpacked`, which has an end.
    """
    try:
        with open_regular(path) as raw:
            compressed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            if compressed:
                size = os.fstat(raw.fileno()).st_size
                with gzip.GzipFile(fileobj=raw) as packed, Unpacked(path, packed, size) as stream:
                    yield stream
            else:
                yield raw
    except FileNotFoundError as error:
        raise MissingDataFileError(path) from error
    except IsADirectoryError as error:
        raise DataFileError(path, "this is a folder, not a file") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError(path, f"the gzip data is damaged or ends early ({error})") from error
    except PermissionError as error:
        raise DataFileError(path, "the file may not be read (permission denied)") from error
    except LongLineError as error:
        raise DataFileError(path, str(error)) from error


def column_positions(path: Path, wanted: list[str | int], names: list[str] | None, count: int) -> list[int]:
    """Turn names and positions of columns into positions.

    Parameters
    ----------
    path
        The file, for errors.
    wanted
        Names or positions.
    names
        The file's column names, or None when it has none.
    count
        The number of columns.
    """
    positions = []
    for column in wanted:
        if isinstance(column, str):
            if names is None:
                raise DataFileError(path, f"column {column!r} is asked for by name, but header=False")
            if names.count(column) != 1:
                fault = "more than one column" if column in names else "no column"
                raise DataFileError(path, f"there is {fault} named {column!r}; there are {', '.join(map(repr, names))}")
            positions.append(names.index(column))
        elif not 0 <= column < count:
            raise DataFileError(path, f"there is no column at position {column}; positions are 0 to {count - 1}")
        else:
            positions.append(int(column))
    if len(set(positions)) < len(positions):
        raise DataFileError(path, f"the same column is asked for twice, in {wanted}")
    return positions
