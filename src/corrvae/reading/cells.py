"""Cells of a table that training should not meet unnoticed: empty ones, and columns of very uneven size."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading.features import Features
from corrvae.shards.matrix import ShardedMatrix

_CELLS = 1 << 22
_LOOKED_AT = 10_000  # rows; the size of a column is seen from these
_LARGE, _UNEVEN = 100.0, 1000.0


def refuse_empty_cells(path: Path, features: Features) -> None:
    """Refuse a table with an empty cell, and say where it is.

    Parameters
    ----------
    path
        The file, for the error.
    features
        What was read from it.

    Examples
    --------
    >>> refuse_empty_cells(Path("x.csv"), Features(np.eye(2, dtype=np.float32), None, None))
    """
    for row, column in _empty_cells(features.matrix):
        who = f"row {row} (from 0)" if features.ids is None else f"the row of {features.ids[row]}"
        where = f"column {column} (from 0)" if features.names is None else f"column {features.names[column]!r}"
        raise DataFileError(
            path, f"{who} has nothing in {where}; fill it, or leave empty cells out of training with --empty-cells mask"
        )


def uneven_columns(features: Features) -> str | None:
    """Say so if columns are of sizes that the networks will find hard to read; ``None`` if not.

    Examples
    --------
    >>> uneven_columns(Features(np.array([[0.1, 1e6], [0.2, 3e6]], dtype=np.float32), None, ("share", "income")))
    "column 'income' has a spread of 1e+06; ..."
    """
    matrix = features.matrix
    if isinstance(matrix, sparse.csr_array | ShardedMatrix):
        return None
    looked_at = np.asarray(matrix[:_LOOKED_AT], dtype=np.float64)
    known = ~np.isnan(looked_at)
    count = np.maximum(known.sum(0), 1)
    middle = np.where(known, looked_at, 0.0).sum(0) / count
    spread = np.sqrt(np.where(known, (looked_at - middle) ** 2, 0.0).sum(0) / count)
    largest, least = int(spread.argmax()), float(spread[spread > 0].min(initial=np.inf))
    if spread[largest] <= _LARGE and spread[largest] <= _UNEVEN * least:
        return None
    name = f"column {largest} (from 0)" if features.names is None else f"column {features.names[largest]!r}"
    return (
        f"{name} has a spread of {spread[largest]:.3g}; the networks learn more from columns that are each scaled to a "
        "spread of about 1"
    )


def _empty_cells(matrix: np.ndarray | sparse.csr_array | ShardedMatrix) -> Iterator[tuple[int, int]]:
    if isinstance(matrix, ShardedMatrix):
        for begin, piece in matrix.pieces():
            yield from ((begin + row, column) for row, column in _empty_cells(piece))
        return
    if isinstance(matrix, sparse.csr_array):
        for place in np.flatnonzero(np.isnan(matrix.data)):
            yield int(np.searchsorted(matrix.indptr, place, side="right")) - 1, int(matrix.indices[place])
        return
    step = max(1, _CELLS // matrix.shape[1])
    for begin in range(0, len(matrix), step):
        for row, column in np.argwhere(np.isnan(matrix[begin : begin + step])):
            yield begin + int(row), int(column)
