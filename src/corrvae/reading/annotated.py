"""Annotated data (.h5ad), through the optional package h5py: the matrix and its names, and nothing else of the file."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import open_data
from corrvae.reading.arrays import check_matrix, check_sparse, to_float32
from corrvae.reading.features import Features
from corrvae.reading.hierarchy import Hierarchy, Node
from corrvae.reading.keys import as_ids

_WRONG = (OSError, LookupError, ValueError, TypeError, RuntimeError, ArithmeticError, AttributeError, RecursionError)
_SHOWN = 80  # letters of an id
_SPARSE = {
    "csr_matrix": sparse.csr_array,
    "csc_matrix": sparse.csc_array,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


def read_annotated(path: Path, id_column: str | None) -> Features:
    """Read the matrix X of annotated data, with the names of its observations as ids and those of variables as names.

    Parameters
    ----------
    path
        The file.
    id_column
        A column of the observations' table to take ids from instead.
    """
    with open_data(path):
        pass
    try:
        import h5py  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        advice = "reading it needs the package h5py: pip install 'corrvae[anndata]'"
        raise DataFileError(path, advice) from error
    try:
        with h5py.File(path, "r") as file:
            return _read(Hierarchy(path, file), id_column)
    except MemoryError as error:
        raise DataFileError(path, "there is not enough memory for it") from error
    except _WRONG as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(path, f"cannot be read as annotated data ({error})") from error


def _read(parts: Hierarchy, id_column: str | None) -> Features:
    obs, var, X = (parts.child(parts.root, name) for name in ("obs", "var", "X"))
    if X is None:
        raise DataFileError(parts.path, "it has no matrix X")
    names = _distinct(parts.path, "names of variables", _column(parts, var, None, "variables"))
    ids = _distinct(parts.path, "ids of observations", _column(parts, obs, id_column, "observations"))
    matrix = _matrix(parts, X, (len(ids), len(names)))
    return Features(matrix, as_ids(ids), tuple(names))


def _column(parts: Hierarchy, frame: Node, name: str | None, whose: str) -> list[str]:
    """Read a column of a data frame as strings, or its index."""
    if not parts.is_group(frame):
        raise DataFileError(
            parts.path, f"it has no table of {whose}, or one of a time before anndata 0.7; write it anew"
        )
    index = parts.attribute(frame, "_index")
    node = parts.child(frame, str(index or "_index") if name is None else name)
    if node is None:
        columns = [column for column in parts.names(frame) if column not in (index, "__categories")]
        raise DataFileError(
            parts.path, f"the {whose} have no column {name!r}; they have {', '.join(columns[:20]) or 'none'}"
        )
    what = f"the names of {whose}" if name is None else f"the column {name!r}"
    if not parts.is_group(node):
        return parts.strings(node, what)
    kind = parts.attribute(node, "encoding-type")
    if kind == "categorical":
        codes = parts.numbers(parts.child(node, "codes"), what)
        categories = np.array(parts.strings(parts.child(node, "categories"), what), dtype=object)
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or bool(((codes < 0) | (codes >= len(categories))).any()):
            raise DataFileError(parts.path, f"{what} has rows without a value")
        return categories[codes].tolist()
    if kind in ("nullable-string-array", "nullable-integer"):
        if parts.numbers(parts.child(node, "mask"), what).any():
            raise DataFileError(parts.path, f"{what} has rows without a value")
        return parts.strings(parts.child(node, "values"), what)
    raise DataFileError(parts.path, f"{what} is of the kind {kind!r}; ids are strings or integers")


def _distinct(path: Path, what: str, strings: list[str]) -> list[str]:
    seen: set[str] = set()
    for value in strings:
        if value in seen:
            raise DataFileError(path, f"the {what} are not distinct: {value[:_SHOWN]!r} is there twice")
        seen.add(value)
    return strings


def _matrix(parts: Hierarchy, X: Node, shape: tuple[int, int]) -> np.ndarray | sparse.csr_array:
    if not parts.is_group(X):
        matrix = parts.numbers(X, "X")
        check_matrix(parts.path, "X", matrix)
        _check_shape(parts.path, matrix.shape, shape)
        return to_float32(parts.path, matrix)
    kind = parts.attribute(X, "encoding-type", "h5sparse_format")
    if kind not in _SPARSE:
        raise DataFileError(parts.path, f"X is of the kind {kind!r}; it should be a matrix, dense or sparse")
    claimed = tuple(int(n) for n in np.atleast_1d(parts.attribute(X, "shape", "h5sparse_shape")))
    # before anything of that many rows is made
    _check_shape(parts.path, claimed, shape)
    arrays = [parts.numbers(parts.child(X, name), f"X/{name}") for name in ("data", "indices", "indptr")]
    if any(array.dtype.kind not in "iu" for array in arrays[1:]):
        raise ValueError("the places of its entries are not whole numbers")
    return check_sparse(parts.path, _SPARSE[kind](tuple(arrays), shape=shape))


def _check_shape(path: Path, found: tuple[Any, ...], wanted: tuple[int, int]) -> None:
    if tuple(found) != wanted:
        raise DataFileError(
            path, f"X is of shape {tuple(found)}, but there are {wanted[0]:,} observations and {wanted[1]:,} variables"
        )
