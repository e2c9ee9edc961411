"""Tables into files and streams, block by block: CSV, Parquet, NPY, JSON; a file is there whole or not at all.

Numbers are written in one way everywhere. Text has nine significant digits of a double, which rounding elsewhere does
not reach, and as many of a single as tell it from its neighbours; Parquet and NPY keep what they are given.
"""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, final

import numpy as np
from jaxtyping import Shaped

from corrvae.answers.tables import AnswerTable
from corrvae.drafts import draft_of_file, is_special
from corrvae.errors import FolderError

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

TABLE_ENDINGS = (".csv", ".parquet")
_BLOCK = 65536

Stream: TypeAlias = TextIO | TextIOBase
Columns: TypeAlias = Mapping[str, Shaped[np.ndarray, " rows"]]


def check_file(path: Path, endings: Sequence[str]) -> None:
    """Refuse a file that cannot be written, before anything is computed for it.

    Parameters
    ----------
    path
        The file. A device or a pipe may have any name; without a known ending it gets what the first stands for.
    endings
        What its name may end in.

    Examples
    --------
    >>> check_file(Path("answer.docx"), (".csv", ".parquet"))
    Traceback (most recent call last):
    corrvae.errors.FolderError: answer.docx: its name must end in .csv or .parquet, which says what is written
    """
    if path.suffix.lower() not in endings and not is_special(path):
        listed = f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]
        raise FolderError(path, f"its name must end in {listed}, which says what is written")
    if not path.parent.is_dir():
        raise FolderError(path.parent, "there is no such folder to write to; make it first")
    if path.is_dir():
        raise FolderError(path, "this is a folder, not a file")


class BlockWriter(ABC):
    """Takes the blocks of a table, one after the other, all with the same columns."""

    @abstractmethod
    def write(self, columns: Columns) -> None:
        """Write the next rows."""

    def close(self) -> None:  # noqa: B027  (most have nothing to end)
        """Write what stands at the end."""


@contextmanager
def writing(path: Path, facts: Mapping[str, Any] | None = None) -> Iterator[BlockWriter]:
    """Open a file for blocks by the ending of its name; it takes its place once all is written.

    Parameters
    ----------
    path
        The file.
    facts
        Kept in a Parquet file's metadata.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "answer.csv")
    ...     with writing(path) as writer:
    ...         writer.write({"id": np.array([7, 8]), "z0": np.array([0.1, 1 / 3])})
    ...     path.read_text().split()
    ['id,z0', '7,0.1', '8,0.333333333']
    """
    with draft_of_file(path) as draft:
        if path.suffix.lower() == ".parquet":
            writer = _ParquetWriter(draft, facts or {})
            try:
                yield writer
            finally:
                writer.close()
        else:
            with draft.open("w", encoding="utf-8", newline="") as stream:
                yield CsvWriter(stream)


def write_table(table: AnswerTable, writer: BlockWriter) -> None:
    """Write a table, with the facts that every row repeats.

    Examples
    --------
    >>> import sys
    >>> table = AnswerTable({"id": np.array(["ann"], object)}, {"better": "lower"}, ("better",))
    >>> write_table(table, CsvWriter(sys.stdout))
    id,better
    ann,lower
    """
    # a table without rows still has its names
    for begin in range(0, max(len(table), 1), _BLOCK):
        piece = {name: values[begin : begin + _BLOCK] for name, values in table.columns.items()}
        n_rows = len(next(iter(piece.values()), ()))
        same = {name: np.full(n_rows, table.facts[name], dtype=object) for name in table.repeated}
        writer.write({**piece, **same})


@final
class CsvWriter(BlockWriter):
    """Writes comma-separated values to a stream of text.

    Parameters
    ----------
    stream
        Where to.
    """

    def __init__(self, stream: Stream) -> None:
        self._rows = csv.writer(stream, lineterminator="\n")
        self._begun = False

    def write(self, columns: Columns) -> None:
        """Write the next rows, the first after their names."""
        if not self._begun:
            self._rows.writerow(columns)
            self._begun = True
        self._rows.writerows(zip(*(spell(values) for values in columns.values()), strict=True))


@final
class JsonWriter(BlockWriter):
    """Collects rows, and writes them with facts as one document.

    Parameters
    ----------
    stream
        Where to.
    facts
        What holds for all rows.
    """

    def __init__(self, stream: Stream, facts: Mapping[str, Any]) -> None:
        self._stream, self._facts = stream, facts
        self._rows: list[dict[str, Any]] = []

    def write(self, columns: Columns) -> None:
        """Take in the next rows; what is the same in all of them is a fact of the document."""
        kept = {name: plain(values) for name, values in columns.items() if name not in self._facts}
        self._rows += [dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)]

    def close(self) -> None:
        """Write the document."""
        self._stream.write(json.dumps({**self._facts, "rows": self._rows}, ensure_ascii=False) + "\n")


@final
class _ParquetWriter(BlockWriter):
    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self._path, self._facts = path, facts
        self._writer: pyarrow.parquet.ParquetWriter | None = None

    def write(self, columns: Columns) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        block = pa.table({name: _arrow(values) for name, values in columns.items()})
        if self._writer is None:
            facts = {str(name): json.dumps(value) for name, value in self._facts.items()}
            schema = block.schema.with_metadata(facts) if facts else block.schema
            self._writer = parquet.ParquetWriter(self._path, schema)
        self._writer.write_table(block.cast(self._writer.schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def spell(values: Shaped[np.ndarray, " rows"]) -> list[str]:
    """Give values as text, numbers in the one way that they are written.

    Examples
    --------
    >>> spell(np.array([0.1, 2 / 3])), spell(np.array([2 / 3], np.float32)), spell(np.array(["ann"], object))
    (['0.1', '0.666666667'], ['0.6666667'], ['ann'])
    """
    if values.dtype == np.float32:
        return values.astype(np.str_).tolist()
    if values.dtype.kind == "f":
        return [f"{value:.9g}" for value in values.tolist()]
    return [str(value) for value in values.tolist()]


def plain(values: Shaped[np.ndarray, " rows"]) -> list[Any]:
    """Give values as JSON has them, numbers with the digits that text has.

    Examples
    --------
    >>> plain(np.array([2 / 3])), plain(np.array([7]))
    ([0.666666667], [7])
    """
    return [float(text) for text in spell(values)] if values.dtype.kind == "f" else values.tolist()


def _arrow(values: np.ndarray) -> "pyarrow.Array":
    import pyarrow as pa

    return pa.array(values) if values.dtype.kind != "O" else pa.array(values.tolist(), _object_type(values))


def _object_type(values: np.ndarray) -> "pyarrow.DataType | None":
    import pyarrow as pa

    return pa.string() if all(isinstance(value, str) for value in values.tolist()) else None
