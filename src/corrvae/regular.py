"""Opening what may be something else: a pipe, which waits for a writer, a device without end, a forbidden folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from corrvae.errors import DataFileError, FolderError

_PROBLEM = "this is a pipe, a device or a socket, not a file; write what it gives into a file first"


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading bytes; what is no file is refused before anything waits for it.

    Parameters
    ----------
    path
        The file, or a link to one.

    Raises
    ------
    DataFileError
        If it is a pipe, a device or a socket. What else can go wrong is an `OSError`, as `open` raises it.

    Examples
    --------
    >>> open_regular(Path(os.devnull))
    Traceback (most recent call last):
    corrvae.errors.DataFileError: /dev/null: this is a pipe, a device or a socket, not a file; ...
    """
    _refuse_special(path, path.stat().st_mode)  # before it is opened: a device may act on that
    stream = open(path, "rb", opener=_without_waiting)  # noqa: SIM115  (the caller closes it)
    try:
        _refuse_special(path, os.fstat(stream.fileno()).st_mode)  # it may have become another since
    except DataFileError:
        stream.close()
        raise
    return stream


@contextmanager
def told_as_unreadable(folder: Path) -> Iterator[None]:
    """Tell what the system refuses as a `FolderError`: that a folder above may not be entered, for example.

    Examples
    --------
    >>> with told_as_unreadable(Path("run")):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    corrvae.errors.FolderError: run: cannot be read (Permission denied)
    """
    try:
        yield
    except OSError as error:
        raise FolderError(folder, f"cannot be read ({error.strerror or error})") from error


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _refuse_special(path: Path, mode: int) -> None:
    # a folder has an error of its own, from `open`
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataFileError(path, _PROBLEM)
