"""Tables in text or Parquet, read by pyarrow a batch of rows at a time.

Delimiter and header of a text are found from its first lines.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int, Shaped
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from corrvae.errors import DataFileError

# A blank stands for any run of blanks and tabs. Semicolons come before commas, which may be decimal. pyarrow knows
# delimiters of one character only: two colons, as MovieLens has them, are read as a separator that no text holds.
BLANKS, _COLONS = " ", "::"
_DELIMITERS = (_COLONS, "\t", ";", ",", "|", BLANKS)
_SEPARATOR = "\x1f"
MISSING = ("", " ", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
ITEM_NAMES = {"item", "movie", "film", "book", "product", "song", "track", "artist", "game", "article"}
ITEM_NAMES |= {"word", "term", "token", "tag", "gene", "feature"}
# Two such names make the first line a header even where nothing below is a number.
KEY_NAMES = {"id", "user", "person", "friend", "name", "node", "vertex", "who", "whom", "left", "right", *ITEM_NAMES}
KEY_NAMES |= {"source", "target", "src", "dst", "from", "to", "truster", "trustee", "follower", "followee"}
GROUP_NAMES = {"group", "member", "household", "family", "team", "batch", "class", "school", "firm", "department"}
_SAMPLE_ROWS, _SAMPLE_BYTES, _BLOCK_BYTES, _BATCH_CELLS = 1000, 1 << 24, 1 << 23, 1 << 22
# As Python writes an integer: 007 stays a string, so that it is written as it was read.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# A decimal comma is a number too, when the question is whether a line holds names.
_NUMBER = re.compile(r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]+")
# Seconds since 1970 that lie after 1973, or finer: a rating or a weight is smaller.
_TIME = re.compile(r"[1-9][0-9]{8,}(\.[0-9]+)?")
_ARROW_ERROR = re.compile(r"(?:In CSV column #(\d+): )?(?:CSV parse error: )?Row #(\d+): (?:CSV conversion.*?: )?(.*)")


def as_ids(strings: Sequence[str]) -> Shaped[np.ndarray, " ids"]:
    """Return ids as integers if all of them are written as such, otherwise as strings."""
    if all(map(_INTEGER.fullmatch, strings)):
        return np.array([int(string) for string in strings], dtype=np.int64)
    return np.array([*strings, None], dtype=object)[:-1]


def stem(name: str) -> str:
    """Return what a usual name of a column stands for: "user" for "userId", "user_id" and "User 2"."""
    plain = name.lower().strip("_. 0123456789") or name
    return plain.removesuffix("id").rstrip("_ ") or plain


def looks_like(values: Sequence[str]) -> Literal["ids", "words", "numbers", "times"]:
    """Return what the cells of a column look like; ids are whole numbers, which may be numbers as well."""
    filled = [value for value in values if value not in MISSING]
    if filled and all(map(_TIME.fullmatch, filled)):
        return "times"
    if not all(map(_NUMBER.fullmatch, filled)):
        return "words"
    return "ids" if filled and len(filled) == len(values) and all(map(_WHOLE.fullmatch, filled)) else "numbers"


def count(number: int, thing: str) -> str:
    """Return "1 row", "2 rows", ..."""
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"


@contextmanager
def open_binary(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading bytes, through gzip if it is compressed; raise DataFileError if that fails."""
    try:
        with path.open("rb") as raw:
            is_compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not is_compressed:
                yield raw
                return
            with gzip.open(raw) as stream:
                yield stream
    except FileNotFoundError as error:
        raise DataFileError(path, "there is no such file") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError(path, f"the gzip data is damaged or ends early ({error})") from error
    except OSError as error:
        raise DataFileError(path, f"cannot be read ({error.strerror or error})") from error


@final
class Table:
    """A table in text or Parquet; its content decides which it is.

    Text may be compressed with gzip; its lines before the first row that begin with ``#`` or ``%`` are comments. It has
    the `names` of its columns (None if it has none), `n_columns`, the first rows as `sample`, and `id_position`: the
    index of a pandas frame, otherwise the first column. `header` is whether a text has names (None: found out).
    """

    def __init__(self, path: Path, header: bool | None = None) -> None:
        self.path, self.id_position = path, 0
        with open_binary(path) as stream:
            start = stream.read(4)
        if not start:
            raise DataFileError(path, "the file is empty")
        self._parquet: parquet.ParquetFile | None = None
        self._open_parquet() if start == b"PAR1" else self._open_text(header)
        if self.n_columns < 2:
            raise DataFileError(path, "there is one column; two are needed")

    @property
    def others(self) -> list[int]:
        """Positions of all columns but that of the ids; the first of them holds the items of a long table."""
        return [k for k in range(self.n_columns) if k != self.id_position]

    def position(self, column: str | int) -> int:
        """Return the position of a column that is given by name or position."""
        if isinstance(column, int) and 0 <= column < self.n_columns:
            return column
        if isinstance(column, int):
            raise DataFileError(self.path, f"there is no column {column}; columns are 0 to {self.n_columns - 1}")
        names = self.names or []
        if names.count(column) != 1:
            fault = "more than one column" if column in names else "no column"
            listed = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
            raise DataFileError(self.path, f"there is {fault} named {column!r}; there are {listed or 'no names'}")
        return names.index(column)

    def name(self, position: int) -> str:
        """Return what to call a column in an error."""
        return f"column {position} (from 0)" if self.names is None else f"column {self.names[position]!r}"

    def error(self, row: int, problem: str) -> DataFileError:
        """Return an error that names the line of a row (from 0) of the data."""
        if self._parquet is not None:
            return DataFileError(self.path, f"row {row} (from 0): {problem}")
        return DataFileError(self.path, problem, self._line(row))

    def batches(self, keys: Sequence[int], numbers: Sequence[int] = ()) -> Iterator[list[pa.Array]]:
        """Yield some columns, a batch of rows at a time: keys as dictionaries of strings, numbers as float64.

        A missing number is null, a missing key is an error.
        """
        begin = 0
        try:
            for batch in self._text_batches(keys, numbers) if self._parquet is None else self._rows([*keys, *numbers]):
                columns = batch.columns
                found = [self._keys(column, k, begin) for k, column in zip(keys, columns, strict=False)]
                yield found + [column.cast(pa.float64(), safe=False) for column in columns[len(keys) :]]
                begin += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            found = str(error).splitlines()[0]
            if match := _ARROW_ERROR.match(found):
                where = "" if match[1] is None else f"{self.name(int(match[1]))}: "
                raise self.error(int(match[2]) - 1, where + match[3]) from error
            if found != "Empty CSV file":
                raise DataFileError(self.path, f"cannot be read as a table ({found})") from error

    def _keys(self, column: pa.Array, position: int, begin: int) -> pa.DictionaryArray:
        if pa.types.is_floating(column.type):
            raise DataFileError(
                self.path, f"{self.name(position)} holds {column.type}; ids and items are integers or strings"
            )
        if not pa.types.is_dictionary(column.type) or column.type.value_type != pa.string():
            column = column.cast(pa.string()).dictionary_encode()
        trimmed = pc.call_function("utf8_trim_whitespace", [column.dictionary])
        keys = pa.DictionaryArray.from_arrays(column.indices, trimmed)
        if keys.null_count or trimmed.index("").as_py() >= 0:
            row = begin + [key or None for key in keys.to_pylist()].index(None)
            raise self.error(row, f"{self.name(position)} is empty, where an id is needed")
        return keys

    # Parquet

    def _open_parquet(self) -> None:
        try:
            self._parquet = parquet.ParquetFile(self.path)
            schema = self._parquet.schema_arrow
            self.names, self.n_columns = list(schema.names), len(schema.names)
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            self.id_position = next((self.names.index(name) for name in index if name in self.names), 0)
            head = next(self._rows(range(min(self.n_columns, 5))), None)
        except (pa.ArrowException, OSError) as error:
            raise DataFileError(self.path, f"cannot be read as Parquet ({str(error).splitlines()[0]})") from error
        columns = [] if head is None else [column[:_SAMPLE_ROWS].to_pylist() for column in head.columns]
        self.sample = [["" if value is None else str(value) for value in row] for row in zip(*columns, strict=True)]

    def _rows(self, positions: Sequence[int]) -> Iterator[pa.RecordBatch]:
        file: Any = self._parquet
        names = [file.schema_arrow.names[k] for k in positions]
        size = max(1, min(1 << 18, _BATCH_CELLS // max(1, len(names))))
        return (batch.select(names) for batch in file.iter_batches(size, columns=names))

    # Text

    def _open_text(self, header: bool | None) -> None:
        lines: list[str] = []
        first, number, size = 0, 0, 0
        with open_binary(self.path) as stream:
            while len(lines) < _SAMPLE_ROWS and size < _SAMPLE_BYTES and (read := stream.readline()):
                number, size = number + 1, size + len(read)
                try:
                    line = read.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise DataFileError(self.path, f"this is not text in UTF-8 ({error.reason})", number) from error
                if line.strip() and (lines or not line.lstrip().startswith(("#", "%"))):
                    first = first or number
                    lines.append(line)
        if not lines:
            raise DataFileError(self.path, "the file is empty: it has no line but blank ones and comments")
        self._delimiter = _find_delimiter(lines)
        rows = _split(lines, self._delimiter)
        self.n_columns = len(rows[0])
        has_header = _has_header(rows) if header is None else header
        self.names = rows[0] if has_header else None
        self.sample = [row for row in rows[has_header:] if len(row) == self.n_columns]
        self._skip = first if has_header else first - 1
        self._block_bytes = max(_BLOCK_BYTES, 8 * max(map(len, lines)))

    @contextmanager
    def _at_first_row(self) -> Iterator[io.BufferedIOBase]:
        with open_binary(self.path) as stream:
            if stream.read(3) != b"\xef\xbb\xbf":
                stream.seek(0)
            for _ in range(self._skip):
                stream.readline()
            yield stream

    def _text_batches(self, keys: Sequence[int], numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
        wanted = {str(k): pa.dictionary(pa.int32(), pa.string()) for k in keys}
        wanted |= {str(k): pa.float64() for k in numbers}
        is_plain = self._delimiter not in (BLANKS, _COLONS)
        with self._at_first_row() as stream:
            yield from arrow_csv.open_csv(
                stream if is_plain else io.BufferedReader(_Rewritten(stream, self._delimiter)),
                arrow_csv.ReadOptions(
                    column_names=[str(k) for k in range(self.n_columns)],
                    block_size=self._block_bytes,
                    use_threads=False,  # otherwise errors name no row
                ),
                arrow_csv.ParseOptions(
                    delimiter=_SEPARATOR if self._delimiter == _COLONS else self._delimiter,
                    quote_char='"' if is_plain else False,
                    newlines_in_values=is_plain,
                ),
                arrow_csv.ConvertOptions(column_types=wanted, include_columns=list(wanted), null_values=list(MISSING)),
            )

    def _line(self, row: int) -> int:
        with self._at_first_row() as stream:
            text: Any = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")  # pyright: ignore
            if self._delimiter in (BLANKS, _COLONS):
                lines = (number for number, line in enumerate(text, start=1) if line.strip())
            else:
                reader = csv.reader(text, delimiter=self._delimiter)
                lines = (reader.line_num for fields in reader if fields)
            return self._skip + next(line for k, line in enumerate(lines) if k == row)


@final
class _Rewritten(io.RawIOBase):
    """Another stream's lines with one character between fields: a blank, or the separator for two colons."""

    def __init__(self, source: io.BufferedIOBase, delimiter: str) -> None:
        self._source, self._delimiter, self._ready = source, delimiter, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready and (block := self._source.read(len(buffer))):
            lines = block + self._source.readline()
            if self._delimiter == BLANKS:
                single = re.sub(rb"[ \t]{2,}|\t", b" ", lines)
                self._ready = re.sub(rb"(?m)^ | (?=\r?$)", b"", single)
            else:
                self._ready = lines.replace(_COLONS.encode(), _SEPARATOR.encode())
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    if delimiter == BLANKS:
        return [line.split() for line in lines]
    rows = (line.split(_COLONS) for line in lines) if delimiter == _COLONS else csv.reader(lines, delimiter=delimiter)
    return [[field.strip() for field in row] for row in rows if row]


def _find_delimiter(lines: list[str]) -> str:
    """Return the first delimiter that cuts all lines alike, otherwise the first that cuts the first line."""
    cutting = []
    for delimiter in _DELIMITERS:
        try:
            rows = _split(lines, delimiter)
        except csv.Error:  # a field longer than Python's limit, because this is not the delimiter
            continue
        if len(rows[0]) < 2:
            continue
        cutting.append(delimiter)
        if len({len(row) for row in rows}) == 1:
            return delimiter
    return cutting[0] if cutting else BLANKS


def _has_header(rows: list[list[str]]) -> bool:
    """Return whether a first row holds names: words above numbers, an empty name above ids, or usual names."""
    first, others = rows[0], rows[1:]
    if not first[0] and any(first) and all(row[0] for row in others):
        return True
    for k, name in enumerate(first):
        below = [row[k] for row in others if len(row) > k and row[k] not in MISSING]
        if below and not _NUMBER.fullmatch(name) and name not in MISSING and all(map(_NUMBER.fullmatch, below)):
            return True
    # user1 and user2 are names of columns, unless user3 is an id.
    stems = [stem(name) for name in first[:2]]
    if any(stem(field) in stems for row in others for field in row[:2]):
        return False
    return stems[0] == "id" or all(name in KEY_NAMES | GROUP_NAMES for name in stems)


@final
class Numbering:
    """Numbers strings in the order in which they first occur, or by a list of known strings (-1: unknown)."""

    def __init__(self, known: Sequence[str] | None = None) -> None:
        self._numbers = {string: number for number, string in enumerate(known or ())}
        self._is_open = known is None

    def number(self, keys: pa.DictionaryArray) -> Int[np.ndarray, " rows"]:
        """Return the number of each key of a column."""
        numbers, strings = self._numbers, keys.dictionary.to_pylist()
        if self._is_open:
            for string in strings:
                numbers.setdefault(string, len(numbers))
        found = [numbers.get(string, -1) for string in strings]
        return np.array(found, dtype=np.int32)[keys.indices.to_numpy()]

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def strings(self) -> list[str]:
        """The strings in the order of their numbers."""
        return list(self._numbers)
