"""Features larger than memory: a CSR matrix over three mapped NumPy arrays in a folder.

The folder holds `data.npy`, `indices.npy`, `indptr.npy` and `shape.npy`, as ``np.save`` writes the attributes of a
`csr_array`, and perhaps `ids.parquet` and `names.parquet`, each with one column. Rows are read from the disk when they
are used; the operating system keeps what fits in its cache.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Shaped
from pyarrow import parquet
from scipy import sparse

from corrvae.errors import DataFileError, FolderError
from corrvae.io.arrays import Features
from corrvae.io.columns import Numbering, as_ids
from corrvae.io.folder import folder_errors, save_array
from corrvae.io.layouts import Layout, long_batches, open_table, report_long

# Entries that are sorted at once: 12 bytes each, and about as much again for sorting.
_ENTRIES = 1 << 22


def write_mapped(
    folder: str | os.PathLike[str],
    matrix: sparse.csr_array,
    *,
    ids: Shaped[np.ndarray, " rows"] | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """Write a sparse matrix as a folder that `open_mapped` and `read_features` open without reading it.

    The folder must not exist yet. `ids` are integers or strings, one for each row; `names` are those of the columns.
    """
    listed = None if ids is None else ids.tolist()
    with _new_folder(Path(folder)) as fresh:
        _write(fresh, (matrix.data, matrix.indices, matrix.indptr), np.array(matrix.shape), listed, names)


def map_table(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    id_column: str | None = None,
    layout: Layout = "auto",
    names: Sequence[str] | None = None,
) -> sparse.csr_array:
    """Write a long table, in text or Parquet, that may be larger than memory as a folder of mapped arrays, and open it.

    The file is read twice: to count the entries of each row, and to put them in their places. Ids and items have to fit
    in memory, entries need not. A table that is not nearly sorted by id is faster to sort first (DuckDB or polars do).
    The other parameters are those of `read_features`.
    """
    wanted = None if names is None else list(names)
    table, is_long = open_table(Path(path), id_column, layout, wanted)
    if not is_long:
        raise DataFileError(table.path, 'this is a wide table; only a long one is mapped (layout="long" if it is one)')
    of_ids, of_items = Numbering(), Numbering(wanted)
    counts, n_unknown = np.zeros(0, dtype=np.int64), 0
    for rows, columns, _ in long_batches(table, of_ids, of_items):
        counts = np.pad(counts, (0, len(of_ids) - len(counts)))
        counts += np.bincount(rows[columns >= 0], minlength=len(counts))
        n_unknown += int(np.count_nonzero(columns < 0))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    with _new_folder(Path(folder)) as fresh:
        indices = _scratch(fresh / "indices", _index_type(max(int(offsets[-1]), len(of_items))), int(offsets[-1]))
        data = _scratch(fresh / "data", np.float32, int(offsets[-1]))
        free = offsets[:-1].copy()
        for rows, columns, values in long_batches(table, of_ids, of_items):
            order = np.argsort(rows, kind="stable")
            order = order[columns[order] >= 0]
            found, begins, repeats = np.unique(rows[order], return_index=True, return_counts=True)
            places = np.repeat(free[found] - begins, repeats) + np.arange(len(order))
            indices[places], data[places] = columns[order], values[order]
            free[found] += repeats
        indptr, n_repeats = _sort_rows(data, indices, offsets, len(of_items))
        arrays = data[: indptr[-1]], indices[: indptr[-1]], indptr
        _write(fresh, arrays, np.array([len(of_ids), len(of_items)]), of_ids.strings, of_items.strings)
        del data, indices, arrays
        (fresh / "indices").unlink()
        (fresh / "data").unlink()
    report_long(table, n_repeats, n_unknown)
    return open_mapped(folder)


def _sort_rows(data: np.ndarray, indices: np.ndarray, offsets: np.ndarray, n_columns: int) -> tuple[np.ndarray, int]:
    """Sort the entries of rows in place, add up repeats and close the gaps; return indptr and the number of repeats."""
    indptr, n_repeats, begin = np.zeros_like(offsets), 0, 0
    while begin < len(offsets) - 1:
        end = max(int(np.searchsorted(offsets, offsets[begin] + _ENTRIES, side="right")) - 1, begin + 1)
        entries = slice(offsets[begin], offsets[end])
        parts = data[entries].copy(), indices[entries].copy(), offsets[begin : end + 1] - offsets[begin]
        block = sparse.csr_array(parts, shape=(end - begin, n_columns))
        block.sum_duplicates()
        n_repeats += len(parts[0]) - block.nnz
        block.eliminate_zeros()
        indptr[begin + 1 : end + 1] = indptr[begin] + block.indptr[1:]
        data[indptr[begin] : indptr[end]], indices[indptr[begin] : indptr[end]] = block.data, block.indices
        begin = end
    return indptr, int(n_repeats)


def open_mapped(folder: str | os.PathLike[str]) -> sparse.csr_array:
    """Open a folder of mapped arrays as a `csr_array`; nothing but what is used is read from the disk.

    `write_mapped` or `map_table` wrote it, or it has `data.npy`, `indices.npy` and `indptr.npy` saved by ``np.save``;
    then the number of columns is one more than the largest index.
    """
    place = Path(folder)
    data, indices, indptr = (_load(place / f"{part}.npy") for part in ("data", "indices", "indptr"))
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        found = f"indices are {indices.dtype} and indptr {indptr.dtype}"
        raise FolderError(place, f"{found}; both should be int32, or both int64, to be used where they are")
    if (place / "shape.npy").exists():
        shape = tuple(_load(place / "shape.npy").tolist())
    else:
        shape = len(indptr) - 1, int(indices.max(initial=-1)) + 1
    if len(indptr) != shape[0] + 1 or indptr[0] != 0 or not indptr[-1] == len(indices) == len(data):
        raise FolderError(place, "damaged: its arrays do not fit together")
    matrix = sparse.csr_array(shape, dtype=data.dtype)
    # Set, not passed: the constructor would copy indices to another type.
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def read_mapped(folder: Path) -> Features:
    """Open a folder of mapped arrays with its ids and names, where it has them."""
    try:
        matrix = open_mapped(folder)
        labels: list[list[Any] | None] = []
        for what, wanted in zip(("ids", "names"), matrix.shape, strict=True):  # pyright: ignore[reportArgumentType]
            place = folder / f"{what}.parquet"
            labels.append(parquet.ParquetFile(place).read().column(0).to_pylist() if place.exists() else None)
            if len(labels[-1] or range(wanted)) != wanted:
                raise FolderError(place, f"damaged: it has not {wanted:,} {what}")
    except FolderError as error:
        raise DataFileError(error.path, error.problem) from error
    except (pa.ArrowException, OSError, IndexError) as error:
        raise DataFileError(folder, f"damaged: {str(error).splitlines()[0]}") from error
    return Features(matrix, None if labels[0] is None else as_ids(list(map(str, labels[0]))), labels[1])


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder beside `folder` that takes its name if the block ends well."""
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    with folder_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FolderError(folder, "this exists already; choose another folder, or remove it")
        fresh.mkdir(parents=True)
        try:
            yield fresh
            fresh.replace(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _index_type(largest: int) -> type[np.signedinteger]:
    return np.int32 if largest < 2**31 else np.int64


def _scratch(path: Path, kind: type[np.generic], size: int) -> np.ndarray:
    """Return a mapped array on space that is reserved: a map that meets a full disk would end the process."""
    size = max(size, 1)
    with path.open("wb") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size * np.dtype(kind).itemsize)
        else:
            stream.truncate(size * np.dtype(kind).itemsize)
    return np.memmap(path, kind, "r+", shape=(size,))


def _write(
    folder: Path,
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    shape: np.ndarray,
    ids: list[Any] | None,
    names: Sequence[str] | None,
) -> None:
    index = _index_type(max(len(arrays[0]), int(shape[1])))
    for name, array, kind in zip(("data", "indices", "indptr"), arrays, (np.float32, index, index), strict=True):
        save_array(folder / f"{name}.npy", array.astype(kind, copy=False))
    save_array(folder / "shape.npy", shape)
    for what, listed, wanted in (("ids", ids, shape[0]), ("names", names, shape[1])):
        if listed is not None:
            if len(listed) != wanted:
                raise ValueError(f"there are {len(listed):,} {what} for a matrix of shape {tuple(shape.tolist())}")
            parquet.write_table(pa.table({what: pa.array(listed)}), folder / f"{what}.parquet")


def _load(path: Path) -> np.ndarray:
    try:
        # An empty array cannot be mapped.
        array = np.load(path, mmap_mode="r" if path.stat().st_size > 128 else None, allow_pickle=False)
    except FileNotFoundError as error:
        raise FolderError(path.parent, f"there is no {path.name}, so this is no folder of mapped features") from error
    except (OSError, ValueError, EOFError) as error:
        raise FolderError(path, f"damaged: {error}") from error
    if array.ndim != 1:
        raise FolderError(path, f"damaged: it has {array.ndim} dimensions; one is needed")
    return array
