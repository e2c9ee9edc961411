"""Thrift's compact protocol, in which Parquet keeps its footer and the heads of its pages, read byte by byte.

Where it does not follow the protocol an `IndexError` says so. Nothing is built from what is skipped.
"""

from collections.abc import Iterator
from typing import final

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_DEEPEST = 32
_LONGEST_INTEGER = 10
_LARGEST_NUMBER = 2**15 - 1


@final
class CompactReader:
    """Reads structures from bytes, one after another.

    Parameters
    ----------
    data
        What is read.

    Examples
    --------
    A structure whose only field, the second, is the integer -3:

    >>> reader = CompactReader(bytes([0x25, 0x05, 0x00]))
    >>> [(number, reader.integer()) for number, _ in reader.fields()]
    [(2, -3)]
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._strings = data, 0
        self.at = 0

    @property
    def n_read(self) -> int:
        """How many bytes were looked at, those within strings left out, which cost nothing to skip."""
        return self.at - self._strings

    def fields(self) -> Iterator[tuple[int, int]]:
        """Give number and kind of each field of a structure; its value must be read or skipped before the next."""
        number = 0
        while (head := self._byte()) != 0:
            before = number
            number = number + (head >> 4) if head >> 4 else self.integer()
            # out of order, twice, or of more than its bits: others might take another one of them than is judged here
            if not before < number <= _LARGEST_NUMBER:
                raise IndexError
            yield number, head & 15

    def structures(self) -> Iterator[None]:
        """Stop at each structure of a list."""
        count, kind = self._list()
        if kind != STRUCT and count:
            raise IndexError
        for _ in range(count):
            yield

    def size(self) -> int:
        """Read an integer that is not negative."""
        value = self.integer()
        if value < 0:
            raise IndexError
        return value

    def integer(self) -> int:
        """Read an integer of any width."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value of this kind."""
        if depth > _DEEPEST:
            raise IndexError
        if kind in (I16, I32, I64):
            self._varint()
        elif kind == BYTE:
            self._byte()
        elif kind == DOUBLE:
            self._advance(8)
        elif kind == BINARY:
            length = self._varint()
            self._advance(length)
            self._strings += length
        elif kind in (LIST, SET):
            count, inner = self._list()
            for _ in range(count):
                self._skip_element(inner, depth)
        elif kind == MAP:
            self._skip_map(depth)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind not in (TRUE, FALSE):
            raise IndexError

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data):  # each element takes a byte at least
            raise IndexError
        return count, head & 15

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):  # in a list a truth takes a byte; as a field it is part of the head
            self._byte()
        else:
            self.skip(kind, depth + 1)

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

    def _varint(self) -> int:
        value = 0
        for place in range(_LONGEST_INTEGER):
            byte = self._byte()
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value
        raise IndexError

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _advance(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError
