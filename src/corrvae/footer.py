"""The footer of a Parquet file, read byte by byte: what it claims of sizes, before any other reader believes it.

Arrow reads footers too, but ends the program where one is damaged in certain ways, and takes memory as it is told to.
The footer is a structure in Thrift's compact protocol; all that is not a size is skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

_MAGIC, _TAIL = b"PAR1", 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEEPEST = 32
_FIXED_WIDTH = 7  # the type of values that all have the length that the schema tells
_LONGEST_INTEGER = 10
# It is read at about a second for a MiB at worst; 50,000 columns that pandas wrote take 23 MiB.
MOST_FOOTER_BYTES = 32 << 20


@final
@dataclass(frozen=True)
class Claims:
    """What a footer claims.

    Attributes
    ----------
    n_rows
        Rows.
    value_bytes
        Bytes that the values take once they are decoded, 8 for each string.
    page_bytes
        Bytes of all pages once they are unpacked.
    """

    n_rows: int
    value_bytes: int
    page_bytes: int

    @property
    def most(self) -> int:
        """The largest claim, in bytes."""
        return max(8 * self.n_rows, self.value_bytes, self.page_bytes)


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


def read_claims(footer: bytes) -> Claims:
    """Read the claims of a footer; a `ValueError` says that it is none.

    Examples
    --------
    >>> read_claims(b"no footer")
    Traceback (most recent call last):
    ValueError: its footer is damaged
    """
    try:
        return _Reader(footer).claims()
    except (IndexError, OverflowError) as error:
        raise ValueError("its footer is damaged") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def claims(self) -> Claims:
        widths: list[int] = []
        n_rows = value_bytes = page_bytes = 0
        for number, kind in self._fields():
            if (number, kind) == (2, _LIST):
                widths = [width for _ in self._structures() if (width := self._width()) is not None]
            elif (number, kind) == (3, _I64):
                n_rows = self._size()
            elif (number, kind) == (4, _LIST):
                for _ in self._structures():
                    for column, (values, pages) in enumerate(self._row_group()):
                        value_bytes += values * (widths[column] if column < len(widths) else 8)
                        page_bytes += pages
            else:
                self._skip(kind)
        return Claims(n_rows, value_bytes, page_bytes)

    def _width(self) -> int | None:
        """Read an element of the schema: the bytes of a value, if it is a column."""
        kind_of_value = length = 0
        is_column = True
        for number, kind in self._fields():
            if (number, kind) == (1, _I32):
                kind_of_value = self._integer()
            elif (number, kind) == (2, _I32):
                length = self._size()
            elif (number, kind) == (5, _I32):
                is_column = self._integer() == 0
            else:
                self._skip(kind)
        if not is_column:
            return None
        return max(8, length) if kind_of_value == _FIXED_WIDTH else 8

    def _row_group(self) -> Iterator[tuple[int, int]]:
        """Read the numbers of values and the unpacked bytes of its columns."""
        for number, kind in self._fields():
            if (number, kind) == (1, _LIST):
                for _ in self._structures():
                    yield self._column()
            else:
                self._skip(kind)

    def _column(self) -> tuple[int, int]:
        values = pages = 0
        for number, kind in self._fields():
            if (number, kind) != (3, _STRUCT):
                self._skip(kind)
                continue
            for inner, inner_kind in self._fields():
                if (inner, inner_kind) == (5, _I64):
                    values = self._size()
                elif (inner, inner_kind) == (6, _I64):
                    pages = self._size()
                else:
                    self._skip(inner_kind)
        return values, pages

    # The protocol

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Give number and kind of each field of a structure; its value must be read or skipped before the next."""
        number = 0
        while (head := self._byte()) != 0:
            before = number
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number <= before:  # out of order, or twice: others might take another one of them than is judged here
                raise IndexError
            yield number, head & 15

    def _structures(self) -> Iterator[None]:
        """Stop at each structure of a list."""
        count, kind = self._list()
        if kind != _STRUCT and count:
            raise IndexError
        for _ in range(count):
            yield

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data):  # each element takes a byte at least
            raise IndexError
        return count, head & 15

    def _skip(self, kind: int, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise IndexError
        if kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BYTE:
            self._byte()
        elif kind == _DOUBLE:
            self._advance(8)
        elif kind == _BINARY:
            self._advance(self._varint())
        elif kind in (_LIST, _SET):
            count, inner = self._list()
            for _ in range(count):
                self._skip_element(inner, depth)
        elif kind == _MAP:
            self._skip_map(depth)
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        elif kind not in (_TRUE, _FALSE):
            raise IndexError

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (_TRUE, _FALSE):  # in a list a truth takes a byte; as a field it is part of the head
            self._byte()
        else:
            self._skip(kind, depth + 1)

    def _skip_map(self, depth: int) -> None:
        count = self._varint()
        if not count:
            return
        kinds = self._byte()
        if count > len(self._data):
            raise IndexError
        for _ in range(count):
            self._skip_element(kinds >> 4, depth)
            self._skip_element(kinds & 15, depth)

    def _size(self) -> int:
        value = self._integer()
        if value < 0:
            raise IndexError
        return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for place in range(_LONGEST_INTEGER):
            byte = self._byte()
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value
        raise IndexError

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _advance(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise IndexError
