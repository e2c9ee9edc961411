"""The footer of a Parquet file: what it claims of sizes, before any other reader believes it.

Arrow reads footers too, but ends the program where one is damaged in certain ways, and takes memory as it is told to.
All that is not a size or a place is skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from corrvae.parquet.compact import I32, I64, LIST, STRUCT, CompactReader

_MAGIC, _TAIL = b"PAR1", 8
_FIXED_WIDTH = 7  # the type of values that all have the length that the schema tells
# It is read at about a second for a MiB at worst; 50,000 columns that pandas wrote take 23 MiB.
MOST_FOOTER_BYTES = 32 << 20
# Numbers of a column's fields: its values, unpacked and packed bytes, where data and dictionary begin.
_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 5, 6, 7, 9, 11


@final
@dataclass(frozen=True)
class Chunk:
    """A column of a row group, as the footer describes it.

    Attributes
    ----------
    begin, n_bytes
        Where its pages are in the file.
    n_values
        Values in its pages, missing ones too.
    page_bytes
        Bytes of its pages once they are unpacked.
    width
        Bytes of a value once it is decoded, 8 for a string.
    """

    begin: int
    n_bytes: int
    n_values: int
    page_bytes: int
    width: int

    @property
    def value_bytes(self) -> int:
        """Bytes of its values once they are decoded."""
        return self.n_values * self.width


@final
@dataclass(frozen=True)
class Footer:
    """What a footer claims.

    Attributes
    ----------
    n_rows
        Rows.
    chunks
        The columns of all row groups.
    """

    n_rows: int
    chunks: list[Chunk]

    @property
    def most(self) -> int:
        """The largest claim, in bytes."""
        values = sum(chunk.value_bytes for chunk in self.chunks)
        return max(8 * self.n_rows, values, sum(chunk.page_bytes for chunk in self.chunks))


def footer_length(tail: bytes, size: int) -> int:
    """Give the length of the footer, from the last eight bytes of a file of this size."""
    length = int.from_bytes(tail[:4], "little")
    if len(tail) != _TAIL or tail[4:] != _MAGIC or length + _TAIL + len(_MAGIC) > size:
        raise ValueError("it does not end as a Parquet file does")
    if length > MOST_FOOTER_BYTES:
        raise ValueError(
            f"its footer has {length:,} bytes, more than {MOST_FOOTER_BYTES:,}; write fewer row groups or columns"
        )
    return length


def read_footer(footer: bytes) -> Footer:
    """Read the claims of a footer; a `ValueError` says that it is none.

    Examples
    --------
    >>> read_footer(b"no footer")
    Traceback (most recent call last):
    ValueError: its footer is damaged
    """
    try:
        return _footer(CompactReader(footer))
    except (IndexError, OverflowError) as error:
        raise ValueError("its footer is damaged") from error


def _footer(reader: CompactReader) -> Footer:
    widths: list[int] = []
    chunks: list[Chunk] = []
    n_rows = 0
    for number, kind in reader.fields():  # in the order of their numbers
        if (number, kind) == (2, LIST):
            widths = [width for _ in reader.structures() if (width := _width(reader)) is not None]
        elif (number, kind) == (3, I64):
            n_rows = reader.size()
        elif (number, kind) == (4, LIST):
            for _ in reader.structures():
                chunks.extend(_row_group(reader, widths))
        else:
            reader.skip(kind)
    return Footer(n_rows, chunks)


def _width(reader: CompactReader) -> int | None:
    """Read an element of the schema: the bytes of a value, if it is a column."""
    kind_of_value = length = 0
    is_column = True
    for number, kind in reader.fields():
        if (number, kind) == (1, I32):
            kind_of_value = reader.integer()
        elif (number, kind) == (2, I32):
            length = reader.size()
        elif (number, kind) == (5, I32):
            is_column = reader.integer() == 0
        else:
            reader.skip(kind)
    if not is_column:
        return None
    return max(8, length) if kind_of_value == _FIXED_WIDTH else 8


def _row_group(reader: CompactReader, widths: list[int]) -> Iterator[Chunk]:
    for number, kind in reader.fields():
        if (number, kind) == (1, LIST):
            for column, _ in enumerate(reader.structures()):
                yield _chunk(reader, widths[column] if column < len(widths) else 8)
        else:
            reader.skip(kind)


def _chunk(reader: CompactReader, width: int) -> Chunk:
    """Read a column of a row group: the numbers that tell a size or a place."""
    sizes = dict[int, int].fromkeys((_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY), 0)
    for number, kind in reader.fields():
        if (number, kind) != (3, STRUCT):
            reader.skip(kind)
            continue
        for inner, inner_kind in reader.fields():
            if inner in sizes and inner_kind == I64:
                sizes[inner] = reader.size()
            else:
                reader.skip(inner_kind)
    # a dictionary is believed where it comes before the data, as Arrow does
    begin = sizes[_DICTIONARY] if 0 < sizes[_DICTIONARY] < sizes[_DATA] else sizes[_DATA]
    return Chunk(begin, sizes[_PACKED], sizes[_VALUES], sizes[_UNPACKED], width)
