"""X and graph as the user brings them: read, checked and aligned, once."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, final

import numpy as np
from jaxtyping import Float, Shaped
from scipy import sparse
from sklearn.utils.validation import validate_data

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds, id_array
from corrvae.io.tables import Features
from corrvae.nn.rows import is_mapped

Matrix = np.ndarray | sparse.csr_array

# Rows, and entries, looked at together, so that a memory map is read piece by piece.
_ROWS, _ENTRIES = 4096, 2**22
_LARGEST = float(np.finfo(np.float32).max)


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Features, the ids of their rows, and the graph between them.

    Attributes
    ----------
    matrix
        Array, memory map or CSR.
    ids
        Distinct ids of the rows, or ``None`` if they only count: 0, 1, ....
    graph
        The graph, its vertices in the order of the rows; ``None`` if there is none.
    has_odd_index
        Whether X came with an index that names no rows, because ids in it repeat or are missing.
    """

    matrix: Matrix
    ids: Shaped[np.ndarray, " rows"] | None = None
    graph: CorrelationGraph | None = None
    has_odd_index: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return shape_of(self.matrix)[0]

    @property
    def row_ids(self) -> Shaped[np.ndarray, " rows"]:
        """Ids of the rows, or their numbers."""
        return np.arange(self.n_rows) if self.ids is None else self.ids


def read_table(estimator: Any, X: Any, *, ids: Any = None, reset: bool, missing: bool = False) -> Table:
    """Read X for a scikit-learn estimator, and check that it holds numbers.

    Parameters
    ----------
    estimator
        Learns the number and names of the columns (`reset`), or has learned them.
    X
        Array, memory map, SciPy matrix, pandas or polars frame, or `corrvae.io.Features`.
    ids
        Ids of the rows; ``None``: those that X has (index of a pandas frame, `Features.ids`).
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
    names = None
    if isinstance(X, Features):
        X, own_ids, names = X.matrix, X.ids, X.names
    else:
        own_ids = _index_of(X)
    learner = estimator
    if names is not None:  # scikit-learn would miss names in the matrix itself
        learner = copy(estimator)
        vars(learner).pop("feature_names_in_", None)
    try:
        checked = validate_data(learner, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        if isinstance(checked, np.ndarray) and checked.dtype.kind == "O":  # some frames with text get this far
            checked = checked.astype(np.float64)
    except (TypeError, ValueError) as error:
        found = _find_text(X)
        if found is None:
            raise
        raise ValueError(
            f"column {found[0]!r} holds {found[1]!r}, which is not a number. Drop the column or encode it as numbers; "
            "ids belong in ids= or in the index of the frame (set_index)"
        ) from error
    if names is not None:
        estimator.n_features_in_ = learner.n_features_in_
        _check_names(estimator, names, reset=reset)
    # scikit-learn returns a plain view of a memory map, which no longer says that it is one.
    matrix: Matrix = X if isinstance(X, np.memmap) else _as_matrix(checked)
    _check_numbers(matrix, missing)
    given = own_ids if ids is None else ids
    if given is None:
        return Table(matrix)
    try:
        return Table(matrix, _row_ids(given, shape_of(matrix)[0]))
    except ValueError:
        if ids is not None:
            raise
        return Table(matrix, has_odd_index=True)


def align(table: Table, graph: Any) -> Table:
    """Return the table with a graph whose vertices are in the order of its rows.

    Vertex i is row i, unless the table has ids of its own of the same kind (integers, or anything else) as the graph's:
    then vertices and rows are matched by id. Where the graph's ids are 0, 1, ..., they only count, so that vertex i is
    row i, unless the rows' ids are these numbers in another order.

    Parameters
    ----------
    table
        The rows.
    graph
        A `CorrelationGraph`, or ``None``.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "cem")])
    >>> align(Table(np.eye(3), np.array(["cem", "bob", "ann"], dtype=object)), graph).graph.edges.tolist()
    [[0, 1], [1, 2]]
    """
    if graph is None:
        return table
    if not isinstance(graph, CorrelationGraph):
        raise TypeError(
            f"graph must be a corrvae.CorrelationGraph, got {type(graph).__name__}; make one with "
            "CorrelationGraph.from_edges, from_scipy, from_networkx or from_pyg, or read it with corrvae.io.read_graph"
        )
    if graph.n_vertices != table.n_rows:
        cure = "Name all vertices, also those without an edge, with vertices= or n_vertices= when making the graph"
        if graph.n_vertices > table.n_rows:
            cure = "graph.subgraph(ids), or graph[positions], leaves out those without a row"
        raise ValueError(
            f"the graph has {graph.n_vertices:,} vertices, but X has {table.n_rows:,} rows; every row is a vertex. "
            f"{cure}"
        )
    ids = table.ids
    if table.has_odd_index and not _counts(graph.ids):
        raise ValueError(
            "ids repeat or are missing in the index of X, so that its rows cannot be matched with the graph's "
            "vertices; give every row its own id, or pass X as an array if vertex i is row i"
        )
    if ids is None:
        return replace(table, ids=graph.ids, graph=graph)
    if _counts(graph.ids) and not _counts(np.sort(ids) if ids.dtype.kind == "i" else ids):
        named = CorrelationGraph(graph.edges, graph.n_vertices, conductances=graph.conductances, vertices=ids)
        return replace(table, graph=named)
    if graph.ids.dtype.kind == ids.dtype.kind:
        return replace(table, graph=_reordered(graph, ids))
    raise ValueError(
        f"the rows of X have ids such as {ids.tolist()[0]!r}, the graph's vertices such as {graph.ids.tolist()[0]!r}: "
        "they cannot be matched by id. If vertex i is row i, pass X as an array; otherwise give both the same ids"
    )


def shape_of(matrix: Matrix) -> tuple[int, int]:
    """Return the numbers of rows and columns."""
    return int(matrix.shape[0]), int(matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]


def row_totals(matrix: Matrix) -> Float[np.ndarray, " rows"]:
    """Return the sum of each row, missing entries left out.

    Examples
    --------
    >>> row_totals(np.array([[1.0, 2.0], [np.nan, 3.0]]))
    array([3., 3.])
    """
    return np.concatenate([_totals(piece) for _, piece in _pieces(matrix)])


def count_entries(matrix: Matrix) -> Shaped[np.ndarray, " rows"]:
    """Return the number of entries of each row that are neither zero nor missing.

    Examples
    --------
    >>> count_entries(np.array([[1.0, 2.0], [np.nan, 0.0]]))
    array([2, 0])
    """
    return np.concatenate([_totals(_filled(piece)).astype(np.int64) for _, piece in _pieces(matrix)])


def digest(matrix: Matrix) -> str:
    """Return a hash of a matrix's shape and entries, by which the data of a fit are recognised.

    Examples
    --------
    >>> digest(np.eye(3)) == digest(np.eye(3)), digest(np.eye(3)) == digest(2 * np.eye(3))
    (True, False)
    """
    code = blake2b(repr(shape_of(matrix)).encode(), digest_size=16)
    for _, piece in _pieces(matrix):
        parts = (piece.indptr, piece.indices, piece.data) if isinstance(piece, sparse.csr_array) else (piece,)
        for part in parts:
            code.update(np.ascontiguousarray(part).data)
    return code.hexdigest()


def own_copy(matrix: Matrix) -> Matrix:
    """Return a copy in float32, so that it does not change with the user's; a memory map is returned itself.

    Examples
    --------
    >>> own_copy(np.eye(2)).dtype
    dtype('float32')
    """
    if isinstance(matrix, sparse.csr_array):
        return matrix if is_mapped(matrix.data) else sparse.csr_array(matrix, dtype=np.float32, copy=True)
    return matrix if is_mapped(matrix) else np.array(matrix, dtype=np.float32)


def check_weights(sample_weight: Any, n_rows: int) -> Float[np.ndarray, " rows"] | None:
    """Return a weight for each row: finite, not negative, not all zero; ``None`` stays ``None``.

    Examples
    --------
    >>> check_weights([1, 2], 2)
    array([1., 2.])
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one number for each of the {n_rows} rows, got shape {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight must be finite and not negative, and not all zero")
    return weights


def _row_ids(ids: Any, n_rows: int) -> np.ndarray | None:
    """Return distinct ids, ``None`` if they only count rows."""
    values = id_array(ids, "ids")
    if len(values) != n_rows:
        raise ValueError(f"there are {len(values):,} ids for {n_rows:,} rows")
    found = VertexIds.from_vertices(values)
    return None if found.are_rows else found.values


def _counts(ids: np.ndarray) -> bool:
    return ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))


def _reordered(graph: CorrelationGraph, ids: np.ndarray) -> CorrelationGraph:
    if graph.ids.tolist() == ids.tolist():
        return graph
    try:
        return graph.subgraph(ids)
    except ValueError as error:
        raise ValueError(
            f"the rows of X do not match the graph's vertices: {error}. Give the rows the graph's ids, or pass an "
            "array whose row i is vertex i; for cross-validation, which takes rows and vertices by position, bring the "
            "graph into the frame's order with graph.subgraph(frame.index)"
        ) from error


def _index_of(X: Any) -> Any:
    """Return a pandas frame's index; frames of other libraries have none."""
    index = getattr(X, "index", None)
    return None if index is None or callable(index) or not hasattr(index, "to_numpy") else index


def _check_names(estimator: Any, names: list[str], *, reset: bool) -> None:
    if reset:
        estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and list(known) != list(names):
        odd = next(i for i, (a, b) in enumerate(zip(known, names, strict=True)) if a != b)
        raise ValueError(f"column {odd} is {names[odd]!r}, but the model was trained with {known[odd]!r} there")


def _find_text(X: Any) -> tuple[Any, str] | None:
    """Find the first column of a data frame that holds text, and what it holds."""
    for name in getattr(X, "columns", ()):
        column = np.asarray(X[name])
        if column.dtype.kind in "OU":
            text = next((value for value in column.tolist() if isinstance(value, str)), None)
            if text is not None:
                return name, text
    return None


def _as_matrix(checked: Any) -> Matrix:
    if sparse.issparse(checked):
        matrix = sparse.csr_array(checked)
        # What is mapped is checked batch by batch, where it is used.
        if not is_mapped(matrix.data) and not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    return checked.astype(np.float32) if checked.dtype == np.float16 else checked


def _pieces(matrix: Matrix) -> Iterator[tuple[int, Matrix]]:
    """Iterate over slices of rows that fit into memory, each with its first row; an empty table is one slice."""
    n_rows, n_columns = shape_of(matrix)
    per_row = n_columns if isinstance(matrix, np.ndarray) else matrix.nnz // max(1, n_rows)
    step = max(1, min(_ROWS, _ENTRIES // max(1, per_row)))
    for begin in range(0, max(1, n_rows), step):
        yield begin, matrix[begin : begin + step]


def _totals(piece: Matrix) -> np.ndarray:
    if isinstance(piece, np.ndarray):
        return np.asarray(np.nansum(piece, axis=1, dtype=np.float64))
    n_rows = shape_of(piece)[0]
    row_of = np.repeat(np.arange(n_rows), np.diff(piece.indptr))
    sums = np.bincount(row_of, weights=np.nan_to_num(piece.data.astype(np.float64)), minlength=n_rows)
    return sums.astype(np.float64)  # without entries they are integers


def _filled(piece: Matrix) -> Matrix:
    """Return 1 where an entry is neither zero nor missing."""
    if isinstance(piece, np.ndarray):
        return (piece != 0) & ~np.isnan(piece)
    filled = ((piece.data != 0) & ~np.isnan(piece.data)).astype(np.float64)
    return sparse.csr_array((filled, piece.indices, piece.indptr), shape=piece.shape)


def _check_numbers(matrix: Matrix, missing: bool) -> None:
    """Raise at the first infinity, number too large for float32 and, unless it may be missing, NaN."""
    for begin, piece in _pieces(matrix):
        if isinstance(piece, sparse.csr_array):
            wrong = np.flatnonzero(_is_wrong(piece.data, missing))
            if len(wrong):
                row = int(np.searchsorted(piece.indptr, wrong[0], side="right")) - 1
                _raise_at(begin + row, int(piece.indices[wrong[0]]), float(piece.data[wrong[0]]))
            continue
        wrong = np.argwhere(_is_wrong(piece, missing))
        if len(wrong):
            row, column = (int(index) for index in wrong[0])
            _raise_at(begin + row, column, float(piece[row, column]))


def _is_wrong(values: np.ndarray, missing: bool) -> np.ndarray:
    if values.dtype.kind != "f":
        return np.zeros(values.shape, dtype=bool)
    fine = np.isfinite(values)
    if values.dtype.itemsize > np.dtype(np.float32).itemsize:
        fine &= np.abs(values) <= _LARGEST
    return ~(fine | np.isnan(values)) if missing else ~fine


def _raise_at(row: int, column: int, value: float) -> None:
    if np.isnan(value):
        raise ValueError(
            f'X holds NaN in row {row}, column {column}. If NaN stands for a missing entry, set missing="mask"; '
            "otherwise fill or drop it"
        )
    if np.isinf(value):
        raise ValueError(f"X holds infinity (inf) in row {row}, column {column}; features must be finite")
    raise ValueError(f"X holds {value:g} in row {row}, column {column}, too large for float32; rescale the features")
