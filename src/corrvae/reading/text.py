"""Tables in text: comma, tab, semicolon or blanks between fields, also compressed with gzip."""

import io
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, final

from corrvae.errors import DataFileError
from corrvae.graphs.files.lines import TidyLines, single_blanks
from corrvae.graphs.files.reading import FileLayout, open_data
from corrvae.graphs.files.sniff import SAMPLE_LINE_BYTES, WHITESPACE, TextForm, sniff
from corrvae.graphs.files.text import after_preamble, data_rows
from corrvae.reading.layouts import ITEM_NAMES
from corrvae.reading.tables import Kind, TableFile

if TYPE_CHECKING:
    import pyarrow

BLOCK_BYTES = 1 << 23
SAMPLE_ROWS = 1000
# Arrow takes about 8 KB for each, whatever it holds.
MOST_COLUMNS = 1 << 17
MISSING = ("", " ", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
# Names of a first column that make the line a header, even where its other names are numbers.
_ID_NAMES = frozenset({"id", "ids", "name", "index", "key", "node", "vertex", "user", "userid", "user_id", "user id"})
_TOO_WIDE = "write so wide a table as Parquet or NPZ, or as a long one with the columns id, item and value"


@final
class TextTable(TableFile):
    """A text file with a row on each line.

    Parameters
    ----------
    path
        The file.
    header
        Whether the first line names the columns; ``None``: found out from the first lines.
    """

    def __init__(self, path: Path, header: bool | None = None) -> None:
        self.path = path
        _refuse_endless_lines(path)
        self._form = _sniff(path, header)
        self.names, self.n_columns = self._form.names, self._form.n_fields
        if self.n_columns > MOST_COLUMNS:
            raise DataFileError(path, f"it has {self.n_columns:,} columns, more than {MOST_COLUMNS:,}; {_TOO_WIDE}")

    def usual_id(self) -> int:
        """Give the first column."""
        return 0

    def sample(self, positions: Sequence[int]) -> list[list[str]]:
        """See `TableFile.sample`."""
        rows = islice(self._rows(), SAMPLE_ROWS)
        return [[fields[k] for k in positions] for _, fields in rows if len(fields) == self.n_columns]

    def batches(self, positions: Sequence[int], kinds: Sequence[Kind]) -> "Iterator[list[pyarrow.Array]]":
        """See `TableFile.batches`."""
        import pyarrow as pa
        from pyarrow import csv

        blanks = self._form.delimiter == WHITESPACE
        wanted = [str(k) for k in positions]
        of_kind = {"key": pa.dictionary(pa.int32(), pa.string()), "number": pa.float64()}

        try:
            with after_preamble(self.path, self._form) as stream:
                # comments are before the table only: an id may begin with # or %
                lines = io.BufferedReader(TidyLines(stream, single_blanks if blanks else bytes))
                if not lines.peek(1):
                    return
                reader = csv.open_csv(
                    lines,
                    read_options=csv.ReadOptions(
                        column_names=[str(k) for k in range(self.n_columns)], block_size=BLOCK_BYTES
                    ),
                    parse_options=csv.ParseOptions(delimiter=self._form.delimiter, quote_char=False if blanks else '"'),
                    convert_options=csv.ConvertOptions(
                        column_types={name: of_kind[kind] for name, kind in zip(wanted, kinds, strict=True)},
                        include_columns=wanted,
                        null_values=list(MISSING),
                    ),
                )
                for batch in reader:
                    self._refuse_empty_keys(batch, positions, kinds)
                    yield batch.columns
        except pa.ArrowException as error:
            self._find_fault(positions, kinds)
            problem = str(error).splitlines()[0]
            raise DataFileError(self.path, f"cannot be read as a table ({problem})") from error

    def place(self, row: int) -> str:
        """See `TableFile.place`."""
        line, _ = next(islice(self._rows(), row, None))
        return f"line {line}"

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        return data_rows(self.path, self._form, comments=False)

    def _refuse_empty_keys(self, batch: "pyarrow.RecordBatch", positions: Sequence[int], kinds: Sequence[Kind]) -> None:
        for column, kind in zip(batch.columns, kinds, strict=True):
            if kind == "key" and any(not key.strip() for key in column.dictionary.to_pylist()):
                self._find_fault(positions, kinds)

    def _find_fault(self, positions: Sequence[int], kinds: Sequence[Kind]) -> None:
        """Read line by line, and raise at the first line that is not as it should be."""
        for line, fields in self._rows():
            if len(fields) != self.n_columns:
                raise DataFileError(
                    self.path,
                    f"line {line} has {_count(len(fields))} where line {self._form.first_line} has "
                    f"{_count(self.n_columns)}",
                )
            for k, kind in zip(positions, kinds, strict=True):
                if kind == "key" and not fields[k]:
                    raise DataFileError(self.path, f"line {line} has nothing in {self.name_of(k)}")
                if kind == "number" and fields[k] not in MISSING and not _is_number(fields[k]):
                    if self._form.names is None and next(islice(self._rows(), 1, None), None) is None:
                        raise DataFileError(self.path, f"has no rows: its one line, line {line}, names the columns")
                    hint = "; decimals are parted by a point" if "," in fields[k] else ""
                    raise DataFileError(
                        self.path, f"line {line} has {fields[k]!r} in {self.name_of(k)}, which is not a number{hint}"
                    )


def _sniff(path: Path, header: bool | None) -> TextForm:
    # positions, so that a first column without a name, as a data frame's index has none, will do
    form = sniff(path, FileLayout(columns=(0, 1), header=header), comments=False)
    first = [field.lower() for field in form.first_fields]
    if header is None and form.names is None and first and (first[0] in _ID_NAMES or first[1] in ITEM_NAMES):
        return sniff(path, FileLayout(columns=(0, 1), header=True), comments=False)
    return form


def _refuse_endless_lines(path: Path) -> None:
    with open_data(path) as stream:
        if len(stream.readline(SAMPLE_LINE_BYTES)) == SAMPLE_LINE_BYTES:
            raise DataFileError(
                path,
                f"its first line has {SAMPLE_LINE_BYTES:,} characters or more; {_TOO_WIDE}",
            )


def _is_number(field: str) -> bool:
    try:
        return not math.isnan(float(field))
    except ValueError:
        return False


def _count(fields: int) -> str:
    return "1 field" if fields == 1 else f"{fields} fields"
