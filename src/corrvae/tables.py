"""What users bring as X: arrays, memory maps, SciPy matrices, shards, pandas and polars frames, read and checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, final

import numpy as np
from jaxtyping import Float, Shaped
from scipy import sparse

from corrvae.graphs.ids import VertexIds, id_array
from corrvae.nn.features import DENSITY_LIMIT
from corrvae.shards.matrix import ShardedMatrix

Matrix = np.ndarray | sparse.csr_array | ShardedMatrix

# Rows, and entries of dense ones, looked at together, so that a memory map is read piece by piece.
_ROWS, _CELLS = 4096, 2**22
_LARGEST = float(np.finfo(np.float32).max)


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Features as they were read, and the ids of their rows where the user's table has some.

    Attributes
    ----------
    matrix
        Array, memory map, CSR or shards; a dense table of mostly zeros has become CSR.
    index
        The index of a data frame, as it is; ``None`` if there is none.
    """

    matrix: Matrix
    index: Any = None

    @property
    def ids(self) -> Shaped[np.ndarray, " rows"] | None:
        """The index as ids; ``None`` if there is none, or if it only counts rows. An entry that is no id is refused."""
        if self.index is None:
            return None
        ids = id_array(self.index.to_numpy(), "the index of X")
        return None if VertexIds(ids.copy(), len(ids)).are_rows else ids

    @property
    def distinct_ids(self) -> Shaped[np.ndarray, " rows"] | None:
        """The ids if each row has one of its own, else ``None``: where no vertices are to be found, none are needed."""
        try:
            ids = self.ids
            return None if ids is None else VertexIds.from_vertices(ids).values
        except (ValueError, TypeError):
            return None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return shape_of(self.matrix)[0]


def read_table(estimator: Any, X: Any, *, reset: bool, missing: bool = False) -> Table:
    """Read X for a scikit-learn estimator, and refuse what cannot be features.

    Parameters
    ----------
    estimator
        Learns the number and names of the columns (`reset`), or has learned them.
    X
        The user's table.
    reset
        Whether to learn columns, or to compare with those learned.
    missing
        Whether NaN stands for a missing entry.

    Examples
    --------
    >>> import pandas
    >>> from sklearn.base import BaseEstimator
    >>> frame = pandas.DataFrame({"red": [1.0, 2.0], "blue": [3.0, 4.0]}, index=["ann", "bob"])
    >>> read_table(BaseEstimator(), frame, reset=True).ids
    array(['ann', 'bob'], dtype=object)
    """
    from sklearn.utils.validation import validate_data

    if isinstance(X, ShardedMatrix):
        return _read_shards(estimator, X, reset=reset, missing=missing)
    try:
        checked = validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        if isinstance(checked, np.ndarray) and checked.dtype.kind == "O":  # of some frames it takes text as it is
            checked = checked.astype(np.float64)
    except (TypeError, ValueError) as error:
        if (found := _find_text(X)) is None:
            raise
        raise ValueError(
            f"column {found[0]!r} holds {found[1]!r}, which is not a number. Leave it out or turn it into numbers; ids "
            "belong into the index of a pandas data frame (set_index), not into a column"
        ) from error
    # scikit-learn gives a plain view of a memory map; the networks' table must know that it is one.
    matrix = X if isinstance(X, np.memmap) else _compact(checked)
    _check_numbers(matrix, missing)
    if isinstance(matrix, sparse.csr_array):
        matrix = sparse.csr_array(matrix, dtype=np.float32)
    return Table(matrix, _index_of(X))


def _find_text(X: Any) -> tuple[Any, str] | None:
    """Find the first column of a data frame that holds text, and what it holds."""
    for name in getattr(X, "columns", ()):
        column = np.asarray(X[name])
        if column.dtype.kind in "OU":
            text = next((value for value in column.tolist() if isinstance(value, str)), None)
            if text is not None:
                return name, text
    return None


def _read_shards(estimator: Any, X: ShardedMatrix, *, reset: bool, missing: bool) -> Table:
    """Look at shards as at any table, without scikit-learn, which would make an array of them."""
    from sklearn.utils.validation import _check_feature_names, _check_n_features

    _check_feature_names(estimator, X, reset=reset)
    _check_n_features(estimator, X, reset=reset)
    _check_numbers(X, missing)
    return Table(X)


def check_weights(sample_weight: Any, table: Table) -> Float[np.ndarray, " rows"]:
    """Read a weight for each row: finite, not negative, not all zero.

    Examples
    --------
    >>> check_weights([1, 2], Table(np.eye(2)))
    array([1., 2.])
    """
    from sklearn.utils.validation import _check_sample_weight

    return _check_sample_weight(sample_weight, table.matrix, dtype=np.float64, ensure_non_negative=True)


def fingerprint(matrix: Matrix) -> str:
    """Give a short code of a matrix's shape and numbers, by which the training data can be recognised.

    It is the same however the numbers are stored: dense or sparse, in any type that float32 is enough for.

    Examples
    --------
    >>> fingerprint(np.eye(3)) == fingerprint(sparse.csr_array(np.eye(3, dtype=np.float32)))
    True
    """
    n_rows, n_columns = shape_of(matrix)
    codes = [blake2b(digest_size=16) for _ in range(3)]
    for _, piece in _pieces(matrix):
        for code, part in zip(codes, _entries(piece), strict=True):
            code.update(np.ascontiguousarray(part).data)
    whole = blake2b(repr((n_rows, n_columns)).encode(), digest_size=16)
    for code in codes:
        whole.update(code.digest())
    return whole.hexdigest()


def _entries(piece: np.ndarray | sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give how many entries other than zero each row has, their columns, and their values."""
    if not isinstance(piece, sparse.csr_array):
        dense = np.asarray(piece, dtype=np.float32)
        kept = dense != 0
        return kept.sum(1), np.nonzero(kept)[1], dense[kept]
    values, row_of = piece.data.astype(np.float32), np.repeat(np.arange(shape_of(piece)[0]), np.diff(piece.indptr))
    kept = values != 0
    counts = np.bincount(row_of[kept], minlength=shape_of(piece)[0])
    return counts, piece.indices[kept].astype(np.int64), values[kept]


def empty_rows(matrix: Matrix) -> Shaped[np.ndarray, " rows"]:
    """Give the rows without an entry other than zero, missing entries left out.

    Examples
    --------
    >>> empty_rows(np.array([[0.0, 1.0], [0.0, 0.0], [0.0, np.nan]]))
    array([1, 2])
    """
    return np.concatenate([begin + np.flatnonzero(~_has_entries(piece)) for begin, piece in _pieces(matrix)])


def _has_entries(piece: np.ndarray | sparse.csr_array) -> np.ndarray:
    if not isinstance(piece, sparse.csr_array):
        return np.asarray(_says_something(piece).any(1))
    row_of = np.repeat(np.arange(shape_of(piece)[0]), np.diff(piece.indptr))
    return np.bincount(row_of[_says_something(piece.data)], minlength=shape_of(piece)[0]) > 0


def _says_something(values: np.ndarray) -> np.ndarray:
    return (values != 0) & ~np.isnan(values)


def row_totals(matrix: Matrix) -> Shaped[np.ndarray, " rows"]:
    """Give the sum of each row, missing entries left out.

    Examples
    --------
    >>> row_totals(np.array([[1.0, 2.0], [np.nan, 3.0]]))
    array([3., 3.])
    """
    return np.concatenate([_totals(piece) for _, piece in _pieces(matrix)])


def _totals(piece: np.ndarray | sparse.csr_array) -> np.ndarray:
    if not isinstance(piece, sparse.csr_array):
        return np.asarray(np.nansum(piece, axis=1, dtype=np.float64))
    row_of = np.repeat(np.arange(shape_of(piece)[0]), np.diff(piece.indptr))
    values = np.nan_to_num(piece.data.astype(np.float64), nan=0.0)
    return np.bincount(row_of, weights=values, minlength=shape_of(piece)[0])


def own_copy(matrix: Matrix) -> Matrix:
    """Copy a matrix, in float32, whatever its owner does to it; what lies on the disk is given itself.

    Examples
    --------
    >>> own_copy(np.eye(2)).dtype
    dtype('float32')
    """
    if isinstance(matrix, sparse.csr_array):
        return sparse.csr_array(matrix, dtype=np.float32, copy=True)
    return matrix if isinstance(matrix, np.memmap | ShardedMatrix) else np.array(matrix, dtype=np.float32)


def shape_of(matrix: Matrix) -> tuple[int, int]:
    """Give rows and columns.

    Examples
    --------
    >>> shape_of(sparse.csr_array(np.eye(3)))
    (3, 3)
    """
    return int(matrix.shape[0]), int(matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]


def _pieces(matrix: Matrix) -> Iterator[tuple[int, np.ndarray | sparse.csr_array]]:
    """Give rows that fit into memory together, with the number of the first; of a table without rows, one piece."""
    if isinstance(matrix, ShardedMatrix):
        yield from matrix.pieces()
        return
    n_rows, n_columns = shape_of(matrix)
    step = max(1, min(_ROWS, _CELLS // max(1, n_columns)))
    for begin in range(0, max(1, n_rows), step):
        piece = matrix[begin : begin + step]
        yield begin, piece if isinstance(piece, sparse.csr_array) else np.asarray(piece)


def _compact(checked: Any) -> Matrix:
    """Give CSR without repeated entries for sparse or mostly zero data, and other arrays as they are."""
    if sparse.issparse(checked):
        matrix = sparse.csr_array(checked)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    if checked.dtype == np.float16:  # which sparse matrices do not know
        checked = checked.astype(np.float32)
    share = np.count_nonzero(checked) / max(checked.size, 1)
    return sparse.csr_array(checked) if share <= DENSITY_LIMIT else checked


def _check_numbers(matrix: Matrix, missing: bool) -> None:
    """Refuse the first infinity, number too large for float32 and, unless it may be missing, NaN."""
    for begin, piece in _pieces(matrix):
        if isinstance(piece, sparse.csr_array):
            wrong = np.flatnonzero(_is_wrong(piece.data, missing))
            if len(wrong):
                row = int(np.searchsorted(piece.indptr, wrong[0], side="right")) - 1
                _refuse(begin + row, int(piece.indices[wrong[0]]), float(piece.data[wrong[0]]))
            continue
        wrong = np.argwhere(_is_wrong(piece, missing))
        if len(wrong):
            row, column = (int(index) for index in wrong[0])
            _refuse(begin + row, column, float(piece[row, column]))


def _is_wrong(values: np.ndarray, missing: bool) -> np.ndarray:
    if values.dtype.kind != "f":
        return np.zeros(values.shape, dtype=bool)
    fine = np.isfinite(values)
    if values.dtype.itemsize > np.dtype(np.float32).itemsize:  # the largest float32 is no number of a smaller type
        fine &= np.abs(values) <= _LARGEST
    return ~(fine | np.isnan(values)) if missing else ~fine


def _refuse(row: int, column: int, value: float) -> None:
    place = f"X holds {'NaN' if np.isnan(value) else 'infinity (inf)' if np.isinf(value) else f'{value:g}'} "
    place += f"in row {row}, column {column}"
    if np.isnan(value):
        raise ValueError(f'{place}. If NaN stands for a missing entry, set missing="mask"; else fill or drop it')
    if np.isinf(value):
        raise ValueError(f"{place}; features must be finite")
    raise ValueError(f"{place}, which is too large for float32; rescale the features")


def _index_of(X: Any) -> Any:
    """Give a pandas frame's index; frames of other libraries have none."""
    index = getattr(X, "index", None)
    return None if index is None or callable(index) or not hasattr(index, "to_numpy") else index
