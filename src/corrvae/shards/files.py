"""The arrays of a shard: NPY files of one dimension, written front to back, and read with no trust in them."""

import hashlib
import mmap
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import Any, final

import numpy as np
from jaxtyping import Shaped

from corrvae.errors import FolderError
from corrvae.regular import open_inside

OFFSETS, COLUMNS, VALUES = np.dtype("<i8"), np.dtype("<i4"), np.dtype("<f4")
# An access advised as random reads the pages asked for and not their neighbours; a file may be larger than memory.
_RANDOM = getattr(mmap, "MADV_RANDOM", None)
_MOST_HEADER_BYTES, _CHECKED_BYTES = 1 << 12, 1 << 20
# Before Python 3.13 a map keeps a descriptor, of which a process has few.
_NO_DESCRIPTOR: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


def most_maps() -> int:
    """Give how many arrays may be mapped at the same time: half of the descriptors that the process may have.

    Examples
    --------
    >>> most_maps() > 0
    True
    """
    try:
        import resource
    except ImportError:  # on Windows
        return 1 << 10
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if _NO_DESCRIPTOR or allowed < 0 else max(1, allowed // 2)


@final
class ArrayWriter:
    """An array whose length is known at the end.

    Parameters
    ----------
    path
        The file to make.
    kind
        What its numbers are.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with ArrayWriter(Path(folder, "a.npy"), OFFSETS) as writer:
    ...         writer.append(np.arange(2))
    ...         writer.append(np.arange(3))
    ...     np.load(Path(folder, "a.npy")).tolist()
    [0, 1, 0, 1, 2]
    """

    def __init__(self, path: Path, kind: np.dtype) -> None:
        self.count = 0
        self._kind, self._hash = kind, hashlib.sha256()
        self._stream = path.open("wb")
        self._write_header()

    def append(self, numbers: Shaped[np.ndarray, " numbers"]) -> None:
        """Write numbers behind those that are there."""
        data = np.ascontiguousarray(numbers, dtype=self._kind).data
        self._stream.write(data)
        self._hash.update(data)
        self.count += len(numbers)

    @property
    def checksum(self) -> str:
        """The SHA-256 of the numbers so far, without the header, which is compared as it is."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Write the length, and all of it through to the disk."""
        with self._stream as stream:
            stream.seek(0)
            self._write_header()
            stream.flush()
            os.fsync(stream.fileno())

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def abandon(self) -> None:
        """Close the file as it is, because it will be removed; that it could not be written has been told."""
        with suppress(OSError):
            self._stream.close()

    def _write_header(self) -> None:
        # NumPy leaves room for any length, so that the header of a longer array is not longer
        header = {"descr": self._kind.str, "fortran_order": False, "shape": (self.count,)}
        np.lib.format.write_array_header_1_0(self._stream, header)


@final
@dataclass(frozen=True)
class ArrayFile:
    """An array on the disk, found to be what it should be.

    Attributes
    ----------
    path
        The file.
    kind, count
        Its numbers, and how many there are.
    offset
        The byte at which they begin.
    identity
        By which a file that was changed or replaced since is told from this one.
    checksum
        The SHA-256 that its numbers should have, if it was recorded.
    """

    path: Path
    kind: np.dtype
    count: int
    offset: int
    identity: tuple[int, int, int]
    checksum: str | None = None

    @classmethod
    def find(cls, path: Path, kind: np.dtype, count: int, checksum: str | None = None) -> "ArrayFile":
        """Look at a file, and refuse one that is not an array of so many numbers."""
        with open_inside(path) as stream:
            found = os.fstat(stream.fileno())
            try:
                shape, fortran, dtype = _read_header(stream)
            except (ValueError, TypeError, EOFError, KeyError, SyntaxError, TokenError, RecursionError) as error:
                raise FolderError(path, f"damaged: not an array ({error})") from error
            offset = stream.tell()
        if dtype != kind or dtype.str != kind.str or shape != (count,) or fortran:
            raise FolderError(path, f"damaged: it should hold {count:,} numbers of the kind {kind}")
        size = offset + count * kind.itemsize
        if found.st_size != size:
            raise FolderError(path, f"damaged: it has {found.st_size:,} bytes, not {size:,}")
        return cls(path, kind, count, offset, _identity(found), checksum)

    def check(self) -> None:
        """Read all of it, and refuse numbers that are not those that were written."""
        if self.checksum is None:
            return
        with self._reopened() as stream:
            stream.seek(self.offset)
            found = hashlib.sha256()
            while part := stream.read(_CHECKED_BYTES):
                found.update(part)
        if found.hexdigest() != self.checksum:
            raise FolderError(self.path, "damaged: its contents do not match its checksum")

    def map(self) -> Shaped[np.ndarray, " count"]:
        """Give the array as it lies on the disk: pages are read when they are touched, and memory can drop them."""
        if not self.count:
            return np.empty(0, self.kind)
        with self._reopened() as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ, **_NO_DESCRIPTOR)
        if _RANDOM is not None:
            mapped.madvise(_RANDOM)
        return np.frombuffer(mapped, self.kind, self.count, self.offset)

    def read(self, begin: int, end: int) -> Shaped[np.ndarray, " part"]:
        """Read a part into memory, and map nothing."""
        with self._reopened() as stream:
            stream.seek(self.offset + begin * self.kind.itemsize)
            data = stream.read((end - begin) * self.kind.itemsize)
        if len(data) < (end - begin) * self.kind.itemsize:
            raise FolderError(self.path, "it was cut off while it was read")
        return np.frombuffer(data, self.kind)

    def _reopened(self) -> BufferedReader:
        stream = open_inside(self.path)
        if _identity(os.fstat(stream.fileno())) != self.identity:
            stream.close()
            raise FolderError(self.path, "it has changed since it was opened; open the folder again")
        return stream


def _read_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"its format is {version[0]}.{version[1]}")
    return np.lib.format.read_array_header_1_0(stream, max_header_size=_MOST_HEADER_BYTES)


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns
