"""Find and open one file of a data set, in a folder or a zip archive, plain or compressed with bzip2.

Nothing is ever unpacked to disk. Archives whose members would leave the folder they are unpacked to are refused all the
same: nothing in them is to be trusted.
"""

import bz2
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from corrvae.errors import DataFileError, MissingDataFileError
from corrvae.regular import open_regular
from corrvae.unpacking import Unpacked, check_method, most_unpacked

_PACKED = ".bz2"
_ZIP = b"PK\x03\x04"  # what an archive with members begins with


@final
@dataclass(frozen=True)
class Member:
    """An open file of a data set: its name without compression, and its bytes."""

    name: str
    stream: io.BufferedIOBase


def bare_name(path: str | Path) -> str:
    """Give a file's name without folders and without the ending of its compression.

    Examples
    --------
    >>> bare_name("downloads/trust_data.txt.bz2")
    'trust_data.txt'
    """
    return Path(path).name.removesuffix(_PACKED)


def beside(path: Path, names: Sequence[str]) -> Path:
    """Give the folder of a file that is one of several; any other path as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trust_data.txt")
    ...     _ = path.write_text("")
    ...     beside(path, ["ratings_data.txt", "trust_data.txt"]) == Path(folder)
    True
    """
    return path.parent if len(names) > 1 and bare_name(path) in names and path.is_file() else path


@contextmanager
def open_member(path: Path, names: Sequence[str]) -> Iterator[Member]:
    """Open the one file that has one of these names.

    Parameters
    ----------
    path
        A folder, a zip archive, or the file itself. The file may lie one folder further down, and be compressed.
    names
        The names it may have.
    """
    try:
        with ExitStack() as stack:
            if not path.exists():
                raise MissingDataFileError(path)
            if path.is_dir():
                found = _one_of([*path.glob("*"), *path.glob("*/*")], names, path)
                stream = stack.enter_context(open_regular(found))
            elif zipfile.is_zipfile(whole := stack.enter_context(open_regular(path))):
                archive = stack.enter_context(_open_archive(path, whole))
                check_members(path, archive)
                # a name such as ./a//b.csv is another one once it is a path
                inside = [(Path(member.filename), member) for member in archive.infolist() if not member.is_dir()]
                found = _one_of([place for place, _ in inside], names, path)
                member = next(member for place, member in inside if place == found)
                refuse_bomb(path, member)
                stream = stack.enter_context(_open_inside(path, archive, member))
            elif bare_name(path) in names:
                found, stream = path, stack.enter_context(open_regular(path))
            elif whole.seek(0) == 0 and whole.read(len(_ZIP)) == _ZIP:
                raise DataFileError(path, "begins as a zip archive and has no end: it was cut off, or is being written")
            else:
                raise DataFileError(path, f"is neither a folder, nor a zip archive, nor named {' or '.join(names)}")
            if found.name.endswith(_PACKED):
                size = (found if path.is_dir() else path).stat().st_size
                stream = Unpacked(path, stack.enter_context(bz2.BZ2File(stream)), size)
            yield Member(bare_name(found), stream)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DataFileError(path, f"is damaged or ends early ({error})") from error
    except OSError as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(path, f"cannot be read ({error.strerror or error})") from error


def check_members(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive of which a member would leave its folder."""
    for name in archive.namelist():
        parts = re.split(r"[/\\]", name)
        if ".." in parts or parts[0] == "" or ":" in parts[0]:
            raise DataFileError(path, f"member {name!r} would leave the folder it is unpacked to; do not use this file")


def refuse_bomb(path: Path, member: zipfile.ZipInfo) -> None:
    """Refuse a member that would unpack to far more than it should; what it claims is all that is ever read of it."""
    check_method(path, member)
    if member.file_size > most_unpacked(member.compress_size):
        raise DataFileError(
            path,
            f"member {member.filename!r} claims to unpack from {member.compress_size:,} bytes to "
            f"{member.file_size:,}; do not use this file",
        )


def _open_archive(path: Path, stream: io.BufferedIOBase) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except ValueError as error:  # names that are not the UTF-8 that they say they are
        raise DataFileError(path, f"is damaged ({error})") from error


def _open_inside(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> io.BufferedIOBase:
    try:
        return archive.open(member)  # pyright: ignore[reportReturnType]  (it is one)
    except RuntimeError as error:  # encrypted, or compressed in a way that is not known
        raise DataFileError(path, f"cannot be read ({error})") from error


def _one_of(paths: Sequence[Path], names: Sequence[str], where: Path) -> Path:
    found = [path for path in paths if bare_name(path) in names]
    # a file that lies there both ways is taken as it is
    plain = [path for path in found if not path.name.endswith(_PACKED)] or found
    if not plain:
        raise DataFileError(where, f"holds no {' or '.join(names)}")
    if len(plain) > 1:
        raise DataFileError(where, f"holds more than one: {', '.join(sorted(str(path) for path in plain))}")
    return plain[0]
