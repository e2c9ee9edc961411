"""Lines of text as Arrow's CSV reader wants them: no comments, and blanks that part fields one at a time."""

import io
import re
from collections.abc import Callable

import numpy as np

READ_BYTES = 1 << 22
MOST_LINE_BYTES = 1 << 23
BLANK, NEWLINE = 32, 10

_COMMENT = re.compile(rb"^[ \t\v\f\r]*[#%][^\n]*\n?", re.MULTILINE)


class LongLineError(ValueError):
    """A line that does not end: no table in text has one so long, and reading it would take all memory."""

    def __init__(self, number: int | None = None) -> None:
        which = "a line" if number is None else f"line {number}"
        super().__init__(f"{which} is longer than {MOST_LINE_BYTES:,} bytes")


def is_comment(line: str) -> bool:
    """Whether a line is a comment: what is not blank begins with ``#`` or ``%``."""
    return line.lstrip(" \t\v\f\r").startswith(("#", "%"))


def without_comments(lines: bytes) -> bytes:
    r"""Leave out the comments among whole lines.

    Examples
    --------
    >>> without_comments(b"a b\n# why\nc #d\n  %\n")
    b'a b\nc #d\n'
    """
    # most files have none, and looking for one byte is quick
    return _COMMENT.sub(b"", lines) if b"#" in lines or b"%" in lines else lines


def single_blanks(lines: bytes) -> bytes:
    r"""Reduce runs of blanks and tabs in whole lines to one blank, and remove those at either end of a line.

    Examples
    --------
    >>> single_blanks(b"  a \t b\r\n\n c d\n")
    b'a b\n\nc d\n'
    """
    text = np.frombuffer(lines, dtype=np.uint8)
    # tab, vertical tab, form feed and carriage return count as blanks
    blank = (text == BLANK) | ((text >= 9) & (text <= 13) & (text != NEWLINE))
    text = np.where(blank, np.uint8(BLANK), text)
    gap = blank | (text == NEWLINE)
    # a blank stays when text follows it ...
    text = text[~(blank & np.append(gap[1:], True))]
    # ... and the line has begun before it
    starts = np.append(True, text[:-1] == NEWLINE)[: len(text)]
    return text[~((text == BLANK) & starts)].tobytes()


class TidyLines(io.RawIOBase):
    """A stream of another stream's lines through a function of whole lines, a few megabytes at a time."""

    def __init__(self, source: io.BufferedIOBase, tidy: Callable[[bytes], bytes]) -> None:
        self._source = source
        self._tidy = tidy
        self._unfinished = b""
        self._ready = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fill a buffer with what comes next."""
        while not self._ready and not self._ended:
            self._refill()
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _refill(self) -> None:
        read = self._source.read(READ_BYTES)
        self._ended = not read
        block = self._unfinished + read
        # whole lines only, so that a run of blanks is never seen in two parts
        end = len(block) if self._ended else block.rfind(b"\n") + 1
        self._unfinished = block[end:]
        if len(self._unfinished) > MOST_LINE_BYTES:
            raise LongLineError
        self._ready = memoryview(self._tidy(block[:end]))
