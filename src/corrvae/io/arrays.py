"""A matrix of features with its ids and names, and its files: NPY, NPZ and AnnData's .h5ad. No pickle is read."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Shaped
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.io.columns import as_ids

_WRONG = (ValueError, OSError, EOFError, LookupError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error)


@final
@dataclass(frozen=True, eq=False)
class Features:
    """A matrix of features with the ids of its rows and the names of its columns.

    `matrix` is float32 if it was read from a file, and perhaps mapped: then it stays on the disk. `ids` are distinct
    integers, or an object array of strings; None: rows are 0, 1, .... `names` are distinct.
    """

    matrix: np.ndarray | sparse.csr_array
    ids: Shaped[np.ndarray, " rows"] | None = None
    names: list[str] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])  # pyright: ignore[reportOptionalSubscript]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]


def read_npy(path: Path) -> Features:
    """Read a matrix whose rows are 0, 1, ...; one of float32 is mapped and stays on the disk."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except _WRONG as error:
        raise DataFileError(path, f"cannot be read as an array ({error})") from error
    return _features(path, matrix)


def read_npz(path: Path) -> Features:
    """Read a SciPy matrix, or one array of two dimensions with, if they are there, ``ids`` and ``names``."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            is_sparse = "format" in archive.files
            arrays = {} if is_sparse else {name: archive[name] for name in archive.files}
            stream.seek(0)
            matrix: Any = sparse.load_npz(stream) if is_sparse else None
    except _WRONG as error:
        raise DataFileError(path, f"cannot be read as arrays or as a sparse matrix ({error})") from error
    if is_sparse:
        return _features(path, matrix)
    matrices = [array for array in arrays.values() if array.ndim == 2]
    if len(matrices) != 1:
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise DataFileError(path, f"one array of two dimensions is needed, the features; it holds {found}")
    return _features(path, matrices[0], arrays.get("ids"), arrays.get("names"))


def read_h5ad(path: Path, id_column: str | None = None) -> Features:
    """Read ``X`` of an .h5ad file with variables as names, and observations, or a column of ``obs``, as ids."""
    try:
        from anndata import read_h5ad
    except ImportError as error:
        raise DataFileError(path, "reading it needs anndata: pip install corrvae[anndata]") from error
    try:
        data = read_h5ad(path)
        ids = data.obs_names if id_column is None else data.obs[id_column]
    except KeyError as error:
        raise DataFileError(path, f"there is no {error}") from error
    except _WRONG as error:
        raise DataFileError(path, f"cannot be read as AnnData ({str(error).splitlines()[0]})") from error
    if data.X is None:
        raise DataFileError(path, "it has no matrix X")
    return _features(path, data.X, ids, data.var_names)


def _features(path: Path, matrix: Any, ids: Any = None, names: Any = None) -> Features:
    """Return checked features in single precision."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub" or 0 in matrix.shape:
        found = f"{matrix.dtype} of shape {matrix.shape}"
        raise DataFileError(path, f"features are numbers in rows and columns; it holds {found}")
    labels: list[list[str] | None] = []
    for what, listed, wanted in (("ids", ids, matrix.shape[0]), ("names", names, matrix.shape[1])):
        labels.append(None if listed is None else list(map(str, listed)))
        if listed is not None and (len(listed) != wanted or len(set(labels[-1] or ())) < wanted):
            raise DataFileError(path, f"{what} should be {wanted:,} distinct ones; it holds {len(listed):,}")
    if sparse.issparse(matrix):
        single = sparse.csr_array(matrix)
        single = sparse.csr_array((_float32(path, single.data), single.indices, single.indptr), shape=single.shape)
        single.sum_duplicates()
    else:
        single = _float32(path, matrix)
    return Features(single, None if labels[0] is None else as_ids(labels[0]), labels[1])


def _float32(path: Path, numbers: Any) -> np.ndarray:
    """Return numbers in single precision, mapped if they are so already; raise if one becomes infinite."""
    if isinstance(numbers, np.memmap) and numbers.dtype == np.float32:
        return numbers
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(numbers, dtype=np.float32)
    if numbers.dtype.kind == "f" and bool(np.isinf(single).any()):
        raise DataFileError(path, "it holds numbers that are infinite or too large for 32 bits; rescale the features")
    return single
