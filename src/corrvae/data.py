"""X and graph as the user brings them: read, checked and aligned, once."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy import sparse
from sklearn.utils.validation import validate_data

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds, as_array, id_array
from corrvae.io.columns import KEY_NAMES, looks_like, stem
from corrvae.io.edges import find_ids, join, read_graph
from corrvae.io.tables import Features, read_features
from corrvae.nn import Scaling
from corrvae.nn.rows import is_mapped

Matrix = np.ndarray | sparse.csr_array

# Rows, and entries, looked at together, so that a memory map is read piece by piece.
_ROWS, _ENTRIES = 4096, 2**22


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Features, the ids of their rows (``None`` if they only count), and the graph, its vertices in the rows' order.

    `has_odd_index`: X came with an index that names no rows, because ids in it repeat or are missing. `source` is what
    X was, if it brings graphs of its own: AnnData, or PyTorch Geometric's ``Data``.
    """

    matrix: Matrix
    ids: Shaped[np.ndarray, " rows"] | None = None
    graph: CorrelationGraph | None = None
    has_odd_index: bool = False
    source: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return shape_of(self.matrix)[0]

    @property
    def vertex_ids(self) -> Shaped[np.ndarray, " vertices"]:
        """Ids of the rows, and after them of the graph's vertices without a row."""
        return self.row_ids if self.graph is None or self.graph.n_vertices == self.n_rows else self.graph.ids

    @property
    def row_ids(self) -> Shaped[np.ndarray, " rows"]:
        """Ids of the rows, or their numbers."""
        return np.arange(self.n_rows) if self.ids is None else self.ids


def read_table(estimator: Any, X: Any, *, ids: Any = None, reset: bool, missing: bool = False) -> Table:
    """Read X in any form that `CorrelatedVAE.fit` takes, and check that it holds numbers.

    Without `ids`, its own are used. With `reset` the estimator learns the number and names of the columns, otherwise
    they are compared with those it has learned. `missing`: NaN stands for a missing entry.
    """
    names, source = None, X if hasattr(X, "obsp") or hasattr(X, "edge_index") else None
    X = _as_features(X, None if reset else getattr(estimator, "feature_names_in_", None), missing=missing)
    if isinstance(X, Features):
        X, own_ids, names = X.matrix, X.ids, X.names
    else:
        own_ids = _index_of(X)
    _check_text(X)
    learner = estimator
    if names is not None:  # scikit-learn would miss names in the matrix itself
        learner = copy(estimator)
        vars(learner).pop("feature_names_in_", None)
    checked = validate_data(learner, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    if names is not None:
        estimator.n_features_in_ = learner.n_features_in_
        _check_names(estimator, names, reset=reset)
    # scikit-learn returns a plain view of a memory map, which is no longer recognised as one.
    matrix: Matrix = X if isinstance(X, np.memmap) else _as_matrix(checked)
    _check_numbers(matrix, missing)
    given = own_ids if ids is None else ids
    if given is None:
        return Table(matrix, source=source)
    try:
        return Table(matrix, _row_ids(given, shape_of(matrix)[0]), source=source)
    except ValueError:
        if ids is not None:
            raise
        return Table(matrix, has_odd_index=True, source=source)


def align(table: Table, graph: Any, *, keep_bare: bool = False) -> Table:
    """Return the table with a graph, in any form that `CorrelatedVAE.fit` takes, in the order of its rows.

    Rows without an edge are isolated vertices; vertices without a row are left out, and a warning counts them, unless
    `keep_bare` keeps them behind the rows. Ids match ids, 7 also "7". Where there is nothing to match, vertex i is row
    i: the table has no ids, or the ids of a `CorrelationGraph` or an adjacency are 0, 1, ... and the rows' ids are not
    these numbers in another order.
    """
    if graph is None and hasattr(table.source, "edge_index"):
        graph = table.source
    if graph is None:
        return table
    found, by_id = _as_graph(graph, table)
    if found.has_groups and not keep_bare:
        raise ValueError(
            'the graph has groups, which are vertices without features; only family="joint" keeps these. Use it, or '
            "leave the groups out: graph[~graph.is_group]"
        )
    ids = table.ids
    if table.has_odd_index and not _counts(found.ids):
        raise ValueError(
            "ids repeat or are missing in the index of X, so that its rows cannot be matched with the graph's "
            "vertices; give every row its own id, or pass X as an array if vertex i is row i"
        )
    if not by_id and found.n_vertices == table.n_rows:
        if ids is None:
            return replace(table, ids=found.ids, graph=found)
        if _counts(found.ids) and not _counts(np.sort(ids) if ids.dtype.kind == "i" else ids):
            named = CorrelationGraph(found.edges, found.n_vertices, conductances=found.conductances, vertices=ids)
            return replace(table, graph=named)
        if (find_ids(found.ids, ids) < 0).any():  # as cross-validation takes both by position
            raise ValueError(
                "the rows of X do not match the graph's vertices, though there are as many; for cross-validation, "
                "bring the graph into the frame's order with graph.subgraph(frame.index), otherwise leave out the "
                "others so"
            )
    if ids is None:
        _check_numbered(found, table.n_rows, by_id or keep_bare)
    return replace(table, graph=join(Features(table.matrix, ids), found, keep_bare=keep_bare))


class Joined(NamedTuple):
    """New points and known ones, in one graph."""

    graph: CorrelationGraph  # first vertices with features, the new ones before the known; of the others the new last
    known_rows: Int[np.ndarray, " known"]  # known rows that take part: those that no new row replaces
    asked: Int[np.ndarray, " asked"]  # positions of what is new; without new rows, of all vertices


def join_known(
    table: Table | None, graph: Any, known: CorrelationGraph | None, known_ids: np.ndarray, n_known: int
) -> Joined:
    """Add new rows, and links between any of their ids, known ids and further ones, to a known graph.

    The first `n_known` of the known ids have features.
    """
    found, _ = _as_graph(graph, Table(np.empty((len(known_ids), 0)), known_ids) if table is None else table)
    new = known_ids[:0] if table is None else table.row_ids
    kept = np.setdiff1d(np.arange(len(known_ids)), find_ids(known_ids, new))
    kept_rows, kept_bare = kept[kept < n_known], kept[kept >= n_known]
    bare = found.ids[(find_ids(known_ids, found.ids) < 0) & (find_ids(new, found.ids) < 0)]
    parts = (new, known_ids[kept_rows], known_ids[kept_bare], bare)
    ids = id_array([value for part in parts for value in part.tolist()], "ids")
    graphs = [each for each in (known, found) if each is not None]
    ends = [np.sort(find_ids(ids, each.ids)[each.edges], axis=1) for each in graphs]
    weights = [np.ones(each.n_edges) if each.conductances is None else each.conductances for each in graphs]
    # The last of several equal edges counts, so that a link given again replaces what was known of it.
    edges, last = np.unique(np.concatenate(ends)[::-1], axis=0, return_index=True)
    weighted = any(each.conductances is not None for each in graphs)
    conductances = np.concatenate(weights)[::-1][last] if weighted else None
    is_group = np.zeros(len(ids), bool)
    for each in graphs:
        is_group[find_ids(ids, each.ids[each.is_group])] = True
    places = np.arange(len(ids))
    return Joined(
        CorrelationGraph(edges, len(ids), conductances=conductances, vertices=ids, is_group=is_group),
        kept_rows,
        places if table is None else np.concatenate([places[: len(new)], places[len(ids) - len(bare) :]]),
    )


def exclusions(queries: np.ndarray, candidates: np.ndarray, exclude: Any) -> sparse.csr_array | None:
    """Return which candidates each query leaves out: itself ("self") and, with a graph, its neighbours there."""
    if exclude is None:
        return None
    if not isinstance(exclude, CorrelationGraph) and not (isinstance(exclude, str) and exclude == "self"):
        raise TypeError(f'exclude must be "self", a CorrelationGraph or None, got {exclude!r}')
    rows, columns = [np.arange(len(queries))], [find_ids(candidates, queries)]
    if isinstance(exclude, CorrelationGraph):
        vertices = find_ids(exclude.ids, queries)
        known = np.flatnonzero(vertices >= 0)
        near = exclude.to_scipy().tocsr()[vertices[known]].tocoo()
        rows.append(known[near.coords[0]])
        columns.append(find_ids(candidates, exclude.ids)[near.coords[1]])
    row, column = np.concatenate(rows), np.concatenate(columns)
    row, column = row[column >= 0], column[column >= 0]
    return sparse.csr_array((np.ones(len(row), np.int8), (row, column)), shape=(len(queries), len(candidates)))


def _check_numbered(graph: CorrelationGraph, n_rows: int, by_id: bool) -> None:
    """Raise if the vertices of a graph cannot be numbers of rows that have no ids."""
    if not by_id:
        raise ValueError(
            f"the graph has {graph.n_vertices:,} vertices, but X has {n_rows:,} rows without ids; pass ids=, leave "
            "vertices out with graph.subgraph(ids), or name those without an edge too, with vertices= or n_vertices="
        )
    ids = id_array(graph.ids[~graph.is_group].tolist(), "ids")
    if len(ids) and ids.dtype.kind != "i":
        first = ids.tolist()[0]
        raise ValueError(f"the graph's vertices have ids such as {first!r}, the rows of X have none; pass ids=")
    if len(ids) and ids.min() > 0 and ids.max() == n_rows:
        raise ValueError(
            f"the graph's vertices are numbered from {ids.min()} to {n_rows}, the {n_rows} rows of X from 0; "
            f"pass ids=range(1, {n_rows + 1}) if the first row is 1"
        )


def _as_graph(graph: Any, table: Table) -> tuple[CorrelationGraph, bool]:
    """Return a graph in whatever form, and whether its vertices are named by ids alone."""
    if isinstance(graph, CorrelationGraph):
        return graph, False
    if isinstance(graph, str) and hasattr(table.source, "obsp"):
        if graph in table.source.obsp:
            graph = sparse.csr_array(table.source.obsp[graph])
        elif not Path(graph).exists():
            names = ", ".join(map(repr, table.source.obsp)) or "none"
            raise ValueError(f"graph={graph!r} is neither among the obsp of this AnnData ({names}) nor a file")
    if isinstance(graph, str | PathLike):
        return read_graph(graph, rows=table.row_ids), True
    if sparse.issparse(graph):
        return CorrelationGraph.from_scipy(graph), False
    if all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")) and callable(graph.nodes):
        return CorrelationGraph.from_networkx(graph), True
    if hasattr(graph, "edge_index"):
        return CorrelationGraph.from_pyg(graph), False
    if hasattr(graph, "columns"):
        return _edges_of(_plain_frame(graph)), True
    array = as_array(graph)
    is_index = array is not None and array.ndim == 2 and array.shape[0] == 2
    if array is not None and is_index and (array.shape[1] != 2 or hasattr(graph, "detach")):
        return CorrelationGraph.from_pyg(graph, n_vertices=table.n_rows), False
    if (array is None and isinstance(graph, Iterable)) or (array is not None and array.shape[1:] == (2,)):
        return CorrelationGraph.from_edges(graph), True
    shape = "" if array is None else f" of shape {array.shape}"
    raise TypeError(
        f"graph is {type(graph).__name__}{shape}, which is not read; pass a CorrelationGraph, a networkx graph, a "
        "SciPy sparse adjacency, an edge_index of shape (2, m), pairs of ids of shape (m, 2), a data frame of edges or "
        "a path"
    )


def _edges_of(frame: Any) -> CorrelationGraph:
    """Return the graph of a data frame with the columns source, target and, if there is a third, weight."""
    names = list(frame.columns)
    if len(names) not in (2, 3):
        raise ValueError(
            f"a data frame of edges has the columns source, target and perhaps weight; this one has {len(names)}: "
            "select these"
        )
    first, second, *rest = (np.asarray(frame[name]) for name in names)
    weights = rest[0] if rest and rest[0].dtype.kind in "iuf" else None
    if weights is not None and (not (weights > 0).all() or (weights == weights[:1]).all()):
        weights = None
    if rest and weights is None:
        warnings.warn(
            f"column {names[2]!r} of the edges is not of positive numbers that differ: not used", stacklevel=4
        )
    return CorrelationGraph.from_edges(list(zip(first.tolist(), second.tolist(), strict=True)), conductances=weights)


def _as_features(X: Any, names: Any, *, missing: bool) -> Any:
    """Return paths, AnnData, PyTorch Geometric's data and long frames as features, and what are arrays as it is."""
    if isinstance(X, str | PathLike):
        wanted = None if names is None else list(names)
        return read_features(X, names=wanted, missing="mask" if missing else "error")
    if all(hasattr(X, name) for name in ("obs_names", "var_names", "X")):
        return Features(X.X, np.array(X.obs_names, dtype=object), [str(name) for name in X.var_names])
    if hasattr(X, "edge_index"):
        return Features(np.asarray(X.x.detach().cpu() if hasattr(X.x, "detach") else X.x))
    if not (hasattr(X, "__array__") or sparse.issparse(X) or isinstance(X, Features | list | tuple)):
        raise TypeError(
            f"X is {type(X).__name__}, which is not read; pass an array, a SciPy sparse matrix, a pandas or polars "
            "frame, AnnData, PyTorch Geometric's Data or a path"
        )
    X = _plain_frame(X)
    return _long_frame(X, names) if hasattr(X, "columns") else X


def _plain_frame(frame: Any) -> Any:
    """Return a pyarrow table as a pandas frame, and anything else as it is."""
    return frame.to_pandas() if hasattr(frame, "column_names") and hasattr(frame, "to_pandas") else frame


def _long_frame(frame: Any, names: Any) -> Any:
    """Return features if a data frame is long: ids that repeat, items, and at most one column of numbers.

    If ids and items both are numbers, it may be a table of counts: then their names must be those of ids or items.
    """
    index = _index_of(frame)
    labels = list(frame.columns)
    if not 2 <= len(labels) <= 4 or (index is not None and not _counts(np.asarray(index))):
        return frame
    columns = [np.asarray(frame[label]).tolist() for label in labels]
    kinds = [looks_like([str(value) for value in column[:1000]]) for column in columns]
    are_named = all(str(label).lower().endswith("id") or stem(str(label)) in KEY_NAMES for label in labels[:2])
    are_keys = set(kinds[:2]) <= {"ids", "words"} and ("words" in kinds[:2] or are_named)
    values = [column for column, kind in zip(columns[2:], kinds[2:], strict=True) if kind in ("ids", "numbers")]
    if not are_keys or len(values) > 1 or len(set(columns[0])) == len(columns[0]):
        return frame
    of_ids = {value: k for k, value in enumerate(dict.fromkeys(columns[0]))}
    items = list(map(str, columns[1]))
    of_items = {item: k for k, item in enumerate(dict.fromkeys(items) if names is None else map(str, names))}
    rows = np.array([of_ids[value] for value in columns[0]])
    places = np.array([of_items.get(item, -1) for item in items])
    known = places >= 0
    if not known.all():
        warnings.warn(
            f"{np.count_nonzero(~known):,} rows with items that the model was not trained with left out", stacklevel=4
        )
    entries = np.asarray(values[0] if values else np.ones(len(rows)), dtype=np.float32)[known]
    matrix = sparse.coo_array((entries, (rows[known], places[known])), shape=(len(of_ids), len(of_items))).tocsr()
    return Features(sparse.csr_array(matrix), id_array(list(of_ids), "ids"), list(of_items))


def shape_of(matrix: Matrix) -> tuple[int, int]:
    """Return the numbers of rows and columns."""
    return int(matrix.shape[0]), int(matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]


def rows_of(matrix: Matrix, positions: Int[np.ndarray, " rows"]) -> Matrix:
    """Return rows at these positions; those beyond the last row are zero, as of vertices without features."""
    known = positions < shape_of(matrix)[0]
    if known.all():
        return matrix[positions]
    picked = matrix[np.where(known, positions, 0)]
    return picked * known[:, None] if isinstance(picked, np.ndarray) else sparse.csr_array(picked * known[:, None])


def row_totals(matrix: Matrix, scaling: Scaling | None = None) -> Float[np.ndarray, " rows"]:
    """Return the sum of each row in the model's units, missing entries left out."""
    units = Scaling() if scaling is None else scaling
    return np.concatenate([_in_double(units(piece)).sum(axis=1) for _, piece in _pieces(matrix)])


class Moments(NamedTuple):
    """Of each column, over its entries that are not missing: mean, mean square, and the share of these entries."""

    mean: Float[np.ndarray, " features"]
    square: Float[np.ndarray, " features"]
    known: Float[np.ndarray, " features"]


def column_moments(matrix: Matrix, scaling: Scaling | None = None) -> Moments:
    """Return the moments of each column in the model's units."""
    n_rows, n_columns = shape_of(matrix)
    units = Scaling() if scaling is None else scaling
    sums, squares, missing = np.zeros((3, n_columns))
    for _, piece in _pieces(matrix):
        rows = units(piece)
        values = _in_double(rows)
        sums += values.sum(axis=0)
        squares += (values**2).sum(axis=0)
        missing += _entrywise(np.isnan, rows).sum(axis=0)
    known = np.maximum(n_rows - missing, 1)
    return Moments(sums / known, squares / known, (n_rows - missing) / max(1, n_rows))


def digest(matrix: Matrix) -> str:
    """Return a hash of a matrix's shape and entries, by which the data of a fit are recognised."""
    code = blake2b(repr(shape_of(matrix)).encode(), digest_size=16)
    for _, piece in _pieces(matrix):
        parts = (piece.indptr, piece.indices, piece.data) if isinstance(piece, sparse.csr_array) else (piece,)
        for part in parts:
            code.update(np.ascontiguousarray(part).data)
    return code.hexdigest()


def own_copy(matrix: Matrix) -> Matrix:
    """Return a copy in float32, so that it does not change with the user's; a memory map is returned itself."""
    if isinstance(matrix, sparse.csr_array):
        return matrix if is_mapped(matrix.data) else sparse.csr_array(matrix, dtype=np.float32, copy=True)
    return matrix if is_mapped(matrix) else np.array(matrix, dtype=np.float32)


def check_weights(sample_weight: Any, n_rows: int) -> Float[np.ndarray, " rows"] | None:
    """Return a weight for each row: finite, not negative, not all zero; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    weights = np.full(n_rows, weights) if weights.ndim == 0 else weights
    if weights.shape != (n_rows,) or not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"sample_weight must be {n_rows} numbers, finite and not negative, and not all zero")
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


def _check_text(X: Any) -> None:
    """Raise at the first column of a data frame that holds text."""
    for name in getattr(X, "columns", ()):
        column = np.asarray(X[name])
        cells = column.tolist() if column.dtype.kind in "OU" else ()
        text = next((cell for cell in cells if isinstance(cell, str)), None)
        if text is not None:
            raise ValueError(
                f"column {name!r} holds {text!r}, which is not a number. Drop the column or encode it as numbers; ids "
                "belong in ids= or in the index of the frame (set_index)"
            )


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


def _entrywise(function: Callable[[np.ndarray], np.ndarray], rows: Matrix) -> Matrix:
    """Return a function of each entry; it has to leave 0 as it is."""
    if isinstance(rows, np.ndarray):
        return function(rows)
    return sparse.csr_array((function(rows.data), rows.indices, rows.indptr), shape=rows.shape)


def _in_double(rows: Matrix) -> Matrix:
    """Return rows in double precision, with zeros where entries are missing."""
    return _entrywise(lambda values: np.nan_to_num(values.astype(np.float64)), rows)


def _check_numbers(matrix: Matrix, missing: bool) -> None:
    """Raise at the first number that is infinite in single precision or, unless it may be missing, NaN."""
    for begin, piece in _pieces(matrix):
        values: np.ndarray = piece.data if isinstance(piece, sparse.csr_array) else piece
        with np.errstate(over="ignore"):
            single = values.astype(np.float32, copy=False)
        wrong = np.flatnonzero(np.isinf(single) if missing else ~np.isfinite(single))
        if not len(wrong):
            continue
        if isinstance(piece, sparse.csr_array):
            row, column = np.searchsorted(piece.indptr, wrong[0], side="right") - 1, piece.indices[wrong[0]]
        else:
            row, column = divmod(wrong[0], piece.shape[1])
        value = float(values.flat[wrong[0]])
        cure = "features must be finite, and not too large for float32"
        if np.isnan(value):
            cure = 'if NaN stands for a missing entry, set missing="mask"; otherwise fill or drop it'
        name = "NaN" if np.isnan(value) else f"{value:g}"
        raise ValueError(f"X holds {name} in row {begin + int(row)}, column {int(column)}; {cure}")
