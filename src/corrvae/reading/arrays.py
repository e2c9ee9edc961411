"""Arrays as NumPy and SciPy write them; nothing in them is ever executed."""

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from scipy import sparse

from corrvae.compressed import check_compressed
from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import open_data
from corrvae.reading.features import Features
from corrvae.reading.keys import as_ids
from corrvae.unpacking import check_method

_WRONG = (
    *(ValueError, OSError, EOFError, LookupError, TypeError, RuntimeError, ArithmeticError),
    *(zipfile.BadZipFile, zlib.error),
)
# No more than this is packed into a byte by the method that NumPy packs with.
_MOST_TIMES, _ALWAYS_BYTES = 1032, 1 << 24
# What a row or column without any entry may claim of memory.
_MOST_ROWS_A_BYTE, _ALWAYS_ROWS = 64, 1 << 24
_LARGEST = float(np.finfo(np.float32).max)


def read_npy(path: Path) -> Features:
    """Read a NPY file: a matrix whose rows are 0, 1, ...; one of float32 stays on the disk."""
    try:
        with open_data(path) as stream:  # a file that cannot be opened is told as everywhere
            claimed, size = _claimed_bytes(stream), path.stat().st_size
        if claimed > size:
            raise ValueError(f"it claims {claimed:,} bytes of numbers, but has {size:,}")
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except _WRONG as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(path, f"cannot be read as an array ({error})") from error
    check_matrix(path, "the array", matrix)
    return Features(matrix if matrix.dtype == np.float32 else to_float32(path, matrix), None, None)


def read_npz(path: Path) -> Features:
    """Read a NPZ file: a SciPy matrix, or an array with, if they are there, ``ids`` and ``names``."""
    try:
        with open_data(path) as stream:
            check_archive(path, stream)
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as archive:
                # SciPy reads the arrays of a sparse matrix itself
                is_sparse = "format" in archive.files
                wanted = [name for name in archive.files if name in ("shape", "offsets") or not is_sparse]
                arrays = {name: archive[name] for name in wanted}
            if is_sparse:
                stream.seek(0)
                return Features(check_sparse(path, _load_sparse(path, stream, arrays)), None, None)
    except _WRONG as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(path, f"cannot be read as arrays or as a sparse matrix ({error})") from error
    return _from_arrays(path, arrays)


def check_archive(path: Path, stream: Any) -> None:
    """Refuse arrays that claim to be larger than they are, before memory is taken for them."""
    with zipfile.ZipFile(stream) as archive:
        whole, held = sum(member.file_size for member in archive.infolist()), path.stat().st_size
        if whole > _MOST_TIMES * held + _ALWAYS_BYTES:  # each by itself may be small enough
            raise DataFileError(path, f"its arrays claim {whole:,} bytes in {held:,}")
        for member in archive.infolist():
            check_method(path, member)
            if member.file_size > _MOST_TIMES * member.compress_size + _ALWAYS_BYTES:
                raise DataFileError(
                    path, f"{member.filename} claims {member.file_size:,} bytes in {member.compress_size:,}"
                )
            with archive.open(member) as file:
                claimed = _claimed_bytes(file)
            if claimed > member.file_size:
                raise DataFileError(
                    path, f"{member.filename} claims {claimed:,} bytes of numbers, but has {member.file_size:,}"
                )


def _claimed_bytes(file: Any) -> int:
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:  # 3.0 has names in UTF-8, for numbers with names: no features
        raise ValueError(f"arrays of the format {version[0]}.{version[1]} are not read")
    try:
        shape, _, kind = read[version](file)
    except (TokenError, SyntaxError, RecursionError) as error:  # the header is an expression of Python's
        raise ValueError(f"its header cannot be read: {error}") from error
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    # a string may have no letters, and still takes an object's memory when it is listed
    return math.prod(shape) * max(1, kind.itemsize)


def _load_sparse(path: Path, stream: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Load a sparse matrix, unless it has more rows or columns than memory for anything of its size."""
    most = _MOST_ROWS_A_BYTE * path.stat().st_size + _ALWAYS_ROWS
    shape = np.atleast_1d(arrays.get("shape", np.zeros(1, np.int64)))
    for length, what in zip(shape.tolist() if shape.dtype.kind in "iu" else (), ("rows", "columns"), strict=False):
        if length > most:
            raise DataFileError(path, f"the matrix claims {length:,} {what}, too many for its size")
    # SciPy looks for each diagonal in each row, also where it has no number
    n_diagonals, n_rows = np.size(arrays.get("offsets", ())), int(shape.flat[0]) if shape.dtype.kind in "iu" else 0
    if n_diagonals * n_rows > _MOST_TIMES * path.stat().st_size + _ALWAYS_ROWS:
        raise DataFileError(
            path, f"the matrix claims {n_diagonals:,} diagonals of {n_rows:,} rows, too many for its size"
        )
    return sparse.load_npz(stream)


def _from_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> Features:
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) != 1:
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise DataFileError(path, f"one array of two dimensions is expected, the features; it holds {found}")
    matrix = arrays[matrices[0]]
    check_matrix(path, f"the array {matrices[0]!r}", matrix)
    ids = _strings(path, arrays, "ids", matrix.shape[0])
    names = _strings(path, arrays, "names", matrix.shape[1])
    return Features(to_float32(path, matrix), None if ids is None else as_ids(ids), None if names is None else names)


def _strings(path: Path, arrays: Mapping[str, np.ndarray], name: str, count: int) -> tuple[str, ...] | None:
    if name not in arrays:
        return None
    array = arrays[name]
    if array.shape != (count,) or array.dtype.kind not in "iuU":
        raise DataFileError(
            path, f"{name!r} should be {count:,} strings or integers; it is {array.dtype} of shape {array.shape}"
        )
    strings = tuple(str(value) for value in array.tolist())
    if len(set(strings)) < count:
        raise DataFileError(path, f"{name!r} are not distinct")
    return strings


def check_sparse(path: Path, matrix: Any) -> sparse.csr_array:
    """Give a sparse matrix of a file by rows, once its parts are seen to fit together."""
    if matrix.ndim != 2:
        raise DataFileError(path, f"the matrix should have two dimensions, not {matrix.ndim}")
    if hasattr(matrix, "indptr"):
        check_compressed(matrix)
    check_matrix(path, "the matrix", matrix)
    rows = sparse.csr_array(matrix)
    rows = sparse.csr_array((to_float32(path, rows.data), rows.indices, rows.indptr), shape=rows.shape)
    rows.sum_duplicates()
    return rows


def check_matrix(path: Path, what: str, matrix: Any) -> None:
    """Refuse what has not two dimensions, no cells, or other things in them than numbers."""
    if matrix.ndim != 2:
        raise DataFileError(path, f"{what} should have two dimensions, rows and features, not {matrix.ndim}")
    if matrix.dtype.kind not in "fiub":
        raise DataFileError(path, f"{what} holds {matrix.dtype}; features are numbers")
    if 0 in matrix.shape:
        raise DataFileError(path, f"{what} is empty: its shape is {matrix.shape}")


def to_float32(path: Path, numbers: np.ndarray) -> np.ndarray:
    """Give numbers of a file in single precision; refuse those that are too large for it."""
    # not compared with the largest number where that is infinite too, as it is in 16 bits
    largest = min(_LARGEST, float(np.finfo(numbers.dtype).max)) if numbers.dtype.kind == "f" else _LARGEST
    if numbers.dtype.kind == "f" and bool((np.abs(numbers) > largest).any()):
        raise DataFileError(path, "it holds numbers that are infinite or too large for 32 bits; rescale the features")
    return np.ascontiguousarray(numbers, dtype=np.float32)
