"""Standard streams of a program that nobody may be listening to any more."""

import io
import os
import sys
from typing import Any, final

_STANDARD = (0, 1, 2)


@final
class UnfailingStream(io.RawIOBase):
    """What is said through a descriptor, as long as that is possible.

    A log on a full disk, or a reader who has gone, is no reason to end work of hours: what cannot be written is lost,
    and from then on the descriptor leads nowhere.

    Parameters
    ----------
    descriptor
        Where to; it stays open.

    Examples
    --------
    >>> reader, writer = os.pipe()
    >>> os.close(reader)
    >>> UnfailingStream(writer).write(b"is anybody there?")
    17
    >>> os.close(writer)
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Give the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, data: Any, /) -> int:
        """Write some bytes, and say how many are dealt with."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # a terminal that takes its time
            return len(data)
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._descriptor)
            os.close(nowhere)
            return len(data)


def secure_streams() -> None:
    """Let standard error never fail, and standard streams that were closed lead nowhere.

    A file that is opened while one of them is closed would get its number, and all that is said there.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) in _STANDARD:
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(UnfailingStream(2)), encoding, errors="backslashreplace", line_buffering=True
    )
