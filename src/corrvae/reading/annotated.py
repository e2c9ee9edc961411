"""Annotated data (.h5ad), through the optional package h5py: the matrix and its names, and nothing else of the file.

A process of its own reads it: see `corrvae.reading.extraction`.
"""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import open_data
from corrvae.reading.arrays import check_matrix, check_sparse, to_float32
from corrvae.reading.extraction import ANSWER, check_shape, seconds_for
from corrvae.reading.features import Features
from corrvae.reading.keys import as_ids

_WRONG = (OSError, LookupError, ValueError, TypeError, RuntimeError, ArithmeticError)
_SPARSE = {"csr": sparse.csr_array, "csc": sparse.csc_array}
# By the clock, which also runs while others have the processor or the disk is slow.
_TIMES_AS_LONG = 8


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
    if find_spec("h5py") is None:
        raise DataFileError(path, "reading it needs the package h5py: pip install 'corrvae[anndata]'")
    try:
        with TemporaryDirectory(prefix="corrvae-") as folder:
            return _read(path, id_column, Path(folder))
    except DataFileError:
        raise
    except MemoryError as error:
        raise DataFileError(path, "there is not enough memory for it") from error
    except _WRONG as error:
        raise DataFileError(path, f"cannot be read as annotated data ({error})") from error


def _read(path: Path, id_column: str | None, folder: Path) -> Features:
    ended = _extract_apart(path, id_column, folder)
    if not (folder / ANSWER).exists():
        raise DataFileError(path, ended)
    answer = json.loads((folder / ANSWER).read_bytes())
    if "problem" in answer:
        raise DataFileError(path, answer["problem"])
    return Features(_matrix(path, folder, answer), as_ids(answer["ids"]), tuple(answer["names"]))


def _extract_apart(path: Path, id_column: str | None, folder: Path) -> str:
    """Let another process read a file; give what to say if it ended without an answer."""
    # -P: what lies in the working folder is not taken for one of the modules that are imported
    command = [sys.executable, "-P", "-m", "corrvae.reading.extraction", str(path), str(folder)]
    seconds = _TIMES_AS_LONG * seconds_for(path)
    try:
        done = subprocess.run(
            command if id_column is None else [*command, id_column],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(place for place in sys.path if place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"damaged: the HDF5 library did not come to an end with it in {seconds} seconds"
    if done.returncode >= 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"the process that was to read it has failed ({said[-1] if said else done.returncode})"
    return ended_by(-done.returncode, seconds_for(path))


def ended_by(number: int, seconds: int) -> str:
    """Say of a process that read a file which signal ended it.

    Examples
    --------
    >>> ended_by(signal.SIGSEGV, 15)
    'damaged: the HDF5 library broke down over it (Segmentation fault)'
    """
    if number == getattr(signal, "SIGXCPU", None):
        return f"damaged: the HDF5 library did not come to an end with it in {seconds} seconds of the processor"
    return f"damaged: the HDF5 library broke down over it ({signal.strsignal(number) or number})"


def _matrix(path: Path, folder: Path, answer: dict[str, Any]) -> np.ndarray | sparse.csr_array:
    shape = len(answer["ids"]), len(answer["names"])
    if answer["kind"] == "dense":
        matrix = _load(folder, "X")
        check_matrix(path, "X", matrix)
        check_shape(path, matrix.shape, shape)
        return to_float32(path, matrix)
    arrays = tuple(_load(folder, name) for name in ("data", "indices", "indptr"))
    return check_sparse(path, _SPARSE[answer["kind"]](arrays, shape=shape))


def _load(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / f"{name}.npy", allow_pickle=False)
