"""The heads of a Parquet file's pages: what they claim of sizes, which may be more than the footer tells.

Arrow takes memory for each page as the page's own head says, and reads on until it has the values of the footer. The
walk here takes the same path through the file and adds up what it finds.
"""

from dataclasses import dataclass
from typing import Any, final

from corrvae.parquet.compact import I32, STRUCT, CompactReader
from corrvae.parquet.footer import Chunk

# All heads together; they are read at about a second for a MiB at worst, and one has about 50 bytes.
MOST_HEAD_BYTES = 32 << 20
_USUAL_HEAD, _LONGEST_HEAD = 1 << 10, 1 << 20
# Of files that Parquet's first programs wrote, Arrow reads a little beyond a column.
_BEYOND = 100
# Kinds of pages, and the field of a head that has the number of values of such a page.
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_COUNTS = {_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}


@final
@dataclass(frozen=True)
class _Head:
    kind: int
    packed: int
    unpacked: int
    n_values: int
    n_bytes: int


def most_of_pages(stream: Any, size: int, chunks: list[Chunk]) -> int:
    """Give the bytes that the pages of these columns claim, unpacked or decoded, whichever are more.

    Examples
    --------
    >>> from io import BytesIO
    >>> head = bytes([0x15, 0, 0x15, 16, 0x15, 16, 0x2C, 0x15, 2, 0, 0])  # one value, eight bytes
    >>> most_of_pages(BytesIO(b"PAR1" + head + bytes(8)), 23, [Chunk(4, 19, 1, 19, 8)])
    8
    """
    pages = values = 0
    left = MOST_HEAD_BYTES
    for chunk in chunks:
        at, seen = chunk.begin, 0
        while seen < chunk.n_values and at < min(size, chunk.begin + chunk.n_bytes + _BEYOND):
            head, cost = _head_at(stream, at)
            left -= cost
            if left < 0:
                raise ValueError(f"the heads of its pages have more than {MOST_HEAD_BYTES:,} bytes; write larger pages")
            at += head.n_bytes + head.packed
            pages += head.unpacked
            values += head.n_values * chunk.width
            if head.kind != _DICTIONARY:
                seen += head.n_values
    return max(pages, values)


def _head_at(stream: Any, at: int) -> tuple[_Head, int]:
    """Read the head that begins here; also what it cost, in bytes looked at."""
    length, cost = _USUAL_HEAD, 0
    while True:
        stream.seek(at)
        data = bytes(stream.read(length))
        reader = CompactReader(data)
        try:
            head = _head(reader)
        except (IndexError, OverflowError) as error:
            # too short an excerpt looks like damage; the rest of the file may follow
            if len(data) < length or length >= _LONGEST_HEAD:
                raise ValueError(f"the head of a page, at byte {at:,}, is damaged") from error
        else:
            return head, cost + reader.n_read
        cost += reader.n_read
        length = min(8 * length, _LONGEST_HEAD)


def _head(reader: CompactReader) -> _Head:
    kind = unpacked = packed = 0
    counts: dict[int, int] = {}
    for number, form in reader.fields():
        if (number, form) == (1, I32):
            kind = reader.integer()
        elif (number, form) == (2, I32):
            unpacked = reader.size()
        elif (number, form) == (3, I32):
            packed = reader.size()
        elif number in _COUNTS.values() and form == STRUCT:
            counts[number] = _count(reader)
        else:
            reader.skip(form)
    return _Head(kind, packed, unpacked, counts.get(_COUNTS.get(kind, 0), 0), reader.at)


def _count(reader: CompactReader) -> int:
    """Read the head of a page of some kind: its number of values."""
    count = 0
    for number, form in reader.fields():
        if (number, form) == (1, I32):
            count = reader.size()
        else:
            reader.skip(form)
    return count
