"""Opening what may be something else: a pipe, which waits for a writer, a device without end, a forbidden folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from corrvae.errors import DataFileError, FolderError

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
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


def open_inside(place: Path) -> BufferedReader:
    """Open a file of a folder that somebody else may have written: a link is not followed, since it could lead out.

    Parameters
    ----------
    place
        The file.

    Raises
    ------
    FolderError
        If it is no regular file, or the system does not let it be read.

    Examples
    --------
    >>> open_inside(Path(os.devnull))
    Traceback (most recent call last):
    corrvae.errors.FolderError: /dev/null: not a regular file; links are not followed
    """
    with told_as_unreadable(place):
        _refuse_irregular(place, place.lstat().st_mode)
        stream = open(place, "rb", opener=_without_waiting_or_links)  # noqa: SIM115  (the caller closes it)
    try:
        _refuse_irregular(place, os.fstat(stream.fileno()).st_mode)
    except FolderError:
        stream.close()
        raise
    return stream


def check_inside(place: Path) -> None:
    """Refuse what should be a folder within another and is none: a link to one could lead out.

    Examples
    --------
    >>> check_inside(Path(os.devnull))
    Traceback (most recent call last):
    corrvae.errors.FolderError: /dev/null: not a folder; links are not followed
    """
    if not os.path.lexists(place):
        raise FolderError(place, "there is no such folder")
    with told_as_unreadable(place):
        mode = place.lstat().st_mode
    if not stat.S_ISDIR(mode):
        raise FolderError(place, "not a folder; links are not followed")


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


def _without_waiting_or_links(path: str, flags: int) -> int:
    return _without_waiting(path, flags | _NO_LINK)


def _refuse_irregular(place: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise FolderError(place, "not a regular file; links are not followed")


def _refuse_special(path: Path, mode: int) -> None:
    # a folder has an error of its own, from `open`
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataFileError(path, _PROBLEM)
