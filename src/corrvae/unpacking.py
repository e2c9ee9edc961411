"""Unpacking that ends: a few bytes of a packed file can stand for more than there is memory for."""

import io
import zipfile
from bz2 import BZ2File
from gzip import GzipFile
from pathlib import Path
from typing import final

from corrvae.errors import DataFileError

# What a byte of a packed file may stand for, beyond what any may: text of numbers packs to a tenth, repetitive text to
# a hundredth.
MOST_TIMES, ALWAYS_BYTES = 200, 1 << 20


def most_unpacked(size: int) -> int:
    """Give the bytes that a packed file of this size may stand for.

    Examples
    --------
    >>> most_unpacked(1_000_000)
    201048576
    """
    return MOST_TIMES * size + ALWAYS_BYTES


def check_method(path: Path, member: zipfile.ZipInfo) -> None:
    """Refuse a member of an archive that is packed by another method than zip archives usually are.

    Python unpacks the other ones without a limit, whatever size they claim: a kilobyte of bzip2 becomes gigabytes.

    Parameters
    ----------
    path
        The archive, for the error.
    member
        Its entry.

    Examples
    --------
    >>> check_method(Path("a.zip"), zipfile.ZipInfo("a.csv"))
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataFileError(
            path, f"member {member.filename!r} is packed by the method {member.compress_type}; only 0 and 8 are read"
        )


@final
class Unpacked(io.BufferedReader):
    """What a packed stream stands for, up to what a file of its size may; then a `DataFileError`.

    Parameters
    ----------
    path
        The file, for errors.
    source
        What unpacks it.
    size
        Bytes of the packed file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.gz")
    ...     with GzipFile(path, "wb") as stream:
    ...         _ = stream.write(b"1,2")
    ...     with GzipFile(path) as stream:
    ...         Unpacked(path, stream, path.stat().st_size).read()
    b'1,2'
    """

    def __init__(self, path: Path, source: GzipFile | BZ2File, size: int) -> None:
        super().__init__(_Bounded(path, source, most_unpacked(size)))


@final
class _Bounded(io.RawIOBase):
    def __init__(self, path: Path, source: GzipFile | BZ2File, most: int) -> None:
        self._path, self._source, self._most = path, source, most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        read = self._source.read(min(len(buffer), io.DEFAULT_BUFFER_SIZE * 16))
        if self._source.tell() > self._most:
            raise DataFileError(
                self._path,
                f"unpacks to more than {self._most:,} bytes, {MOST_TIMES} times its size; "
                "if it is right, unpack it first",
            )
        buffer[: len(read)] = read
        return len(read)
