"""Annotated data (.h5ad), through the optional package anndata."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import open_data
from corrvae.reading.features import Features
from corrvae.reading.keys import as_ids


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
        import anndata  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        advice = "reading it needs the package anndata: pip install 'corrvae[anndata]'"
        raise DataFileError(path, advice) from error
    try:
        data = anndata.read_h5ad(path)
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DataFileError(path, f"cannot be read as annotated data ({error})") from error
    if data.X is None:
        raise DataFileError(path, "it has no matrix X")
    ids = _distinct(
        path, "ids of observations", data.obs_names if id_column is None else _column(path, data, id_column)
    )
    names = _distinct(path, "names of variables", data.var_names)
    return Features(_matrix(data.X), as_ids(ids), tuple(names))


def _column(path: Path, data: Any, name: str) -> Any:
    if name not in data.obs:
        raise DataFileError(
            path, f"the observations have no column {name!r}; they have {', '.join(data.obs) or 'none'}"
        )
    return data.obs[name]


def _distinct(path: Path, what: str, values: Any) -> list[str]:
    strings = [str(value) for value in values]
    if len(set(strings)) < len(strings):
        twice = next(value for value in strings if strings.count(value) > 1)
        raise DataFileError(path, f"the {what} are not distinct: {twice!r} is there twice")
    return strings


def _matrix(X: Any) -> np.ndarray | sparse.csr_array:
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float32)
    return np.asarray(X, dtype=np.float32)
