"""The matrix and the names of annotated data (.h5ad), taken out of the file in a process of its own.

The HDF5 library, written in C, may be kept busy for ever or brought down by a damaged file, out of reach of what calls
it. Run as a program (``python -m corrvae.reading.extraction FILE FOLDER [COLUMN]``), this module reads a file within
limits on the processor's time and on memory, and leaves what it found as NPY files and JSON in a folder.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from corrvae.errors import DataFileError
from corrvae.reading.hierarchy import Hierarchy, Node, most_bytes

ANSWER = "answer.json"
_WRONG = (OSError, LookupError, ValueError, TypeError, RuntimeError, ArithmeticError, AttributeError, RecursionError)
_SHOWN = 80  # letters of an id
_SPARSE = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}
# Of the processor: what any file may take, and how much of a file is read in a second at least.
_SECONDS, _BYTES_A_SECOND = 15, 1 << 20
# What is taken besides the tables that are read, of which there are four at a time at most.
_MEMORY, _TABLES = 1 << 30, 4


def seconds_for(path: Path) -> int:
    """Give the time of the processor that reading a file may take."""
    return _SECONDS + path.stat().st_size // _BYTES_A_SECOND


def extract(path: Path, id_column: str | None, folder: Path) -> None:
    """Read a file, and write its arrays and an answer into a folder: what was found, or what is wrong.

    Parameters
    ----------
    path
        The file.
    id_column
        A column of the observations' table to take ids from, instead of its index.
    folder
        An empty folder.
    """
    import h5py  # pyright: ignore[reportMissingImports]

    try:
        with h5py.File(path, "r") as file:
            answer = _read(Hierarchy(path, file), id_column, folder)
    except MemoryError:
        answer = {"problem": "there is not enough memory for it"}
    except DataFileError as error:
        answer = {"problem": error.problem}
    except _WRONG as error:
        answer = {"problem": f"cannot be read as annotated data ({error})"}
    # under its name once it is whole: the process may be ended at any moment
    draft = folder / "draft"
    draft.write_text(json.dumps(answer))
    draft.rename(folder / ANSWER)


def _read(parts: Hierarchy, id_column: str | None, folder: Path) -> dict[str, Any]:
    obs, var, X = (parts.child(parts.root, name) for name in ("obs", "var", "X"))
    if X is None:
        raise DataFileError(parts.path, "it has no matrix X")
    names = _distinct(parts.path, "names of variables", _column(parts, var, None, "variables"))
    ids = _distinct(parts.path, "ids of observations", _column(parts, obs, id_column, "observations"))
    arrays = _arrays(parts, X, (len(ids), len(names)))
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    kind = _SPARSE[str(_kind(parts, X))] if parts.is_group(X) else "dense"
    return {"ids": ids, "names": names, "kind": kind}


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


def _arrays(parts: Hierarchy, X: Node, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    if not parts.is_group(X):
        return {"X": parts.numbers(X, "X")}
    kind = _kind(parts, X)
    if kind not in _SPARSE:
        raise DataFileError(parts.path, f"X is of the kind {kind!r}; it should be a matrix, dense or sparse")
    claimed = tuple(int(n) for n in np.atleast_1d(parts.attribute(X, "shape", "h5sparse_shape")))
    # before anything of that many rows is made
    check_shape(parts.path, claimed, shape)
    arrays = {name: parts.numbers(parts.child(X, name), f"X/{name}") for name in ("data", "indices", "indptr")}
    if any(arrays[name].dtype.kind not in "iu" for name in ("indices", "indptr")):
        raise ValueError("the places of its entries are not whole numbers")
    return arrays


def _kind(parts: Hierarchy, X: Node) -> Any:
    return parts.attribute(X, "encoding-type", "h5sparse_format")


def check_shape(path: Path, found: tuple[Any, ...], wanted: tuple[int, int]) -> None:
    """Refuse a matrix that has not as many rows and columns as there are names of them."""
    if tuple(found) != wanted:
        raise DataFileError(
            path, f"X is of shape {tuple(found)}, but there are {wanted[0]:,} observations and {wanted[1]:,} variables"
        )


def keep_within(path: Path) -> None:
    """Limit the time and the memory of this process to what reading a file may take, where the system can do so."""
    try:
        import resource
    except ImportError:  # on Windows, where the process that waits for this one has its own limit of time
        return
    import psutil

    most = psutil.Process().memory_info().vms + _MEMORY + _TABLES * most_bytes(path)
    limits = {resource.RLIMIT_CPU: seconds_for(path), resource.RLIMIT_AS: most, resource.RLIMIT_CORE: 0}
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        with suppress(ValueError, OSError):  # as macOS refuses some
            resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))


def main(path: str, folder: str, id_column: str | None = None) -> None:
    """Read a file within limits."""
    import h5py  # noqa: F401  # pyright: ignore[reportMissingImports, reportUnusedImport]  (before its memory counts)

    keep_within(Path(path))
    extract(Path(path), id_column, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
