"""Edges and lists of ids from files, and the join of a graph with a table of features by id."""

import csv
import io
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.edges import EdgeError
from corrvae.graphs.ids import VertexIds, object_array
from corrvae.io.arrays import Features
from corrvae.io.columns import Kind, Numbering, Table, as_ids, count, open_binary

_SHOWN = 5


@final
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of ids in the order of a file.

    Attributes
    ----------
    codes : ndarray of shape (pairs, 2)
        Positions in `distinct`.
    distinct : ndarray
        The distinct ids, sorted: integers if all are, otherwise strings.
    values : ndarray or None
        A number for each pair.
    error : callable
        ``error(k, problem)`` returns a `DataFileError` that names the line of the k-th pair.
    has_header : bool
        Whether the file names its columns. If not, the first pair may be names that were not recognised.
    """

    codes: Int[np.ndarray, "pairs 2"]
    distinct: Shaped[np.ndarray, " ids"]
    values: Float[np.ndarray, " pairs"] | None
    error: Callable[[int, str], DataFileError]
    has_header: bool

    @property
    def ids(self) -> Shaped[np.ndarray, "pairs 2"]:
        """The pairs of ids."""
        return self.distinct[self.codes]


def read_graph(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] = (0, 1),
    conductance: str | int | None = None,
    header: bool | None = None,
    directed: Literal["mutual"] | None = None,
) -> CorrelationGraph:
    r"""Read a graph from a file of edges: CSV, TSV, blanks between columns, or Parquet; text may be gzipped.

    Ids are integers if all of them are written as integers (7, not 007), otherwise strings. In a text, lines before the
    first row that begin with ``#`` or ``%`` are comments.

    Parameters
    ----------
    path : path-like
        The file. Its content decides what it is, not its name.
    columns : two str or int
        Names or positions (from 0) of the columns of ids.
    conductance : str or int, optional
        Name or position of the column of conductances. Without it, further columns are not read.
    header : bool, optional
        Whether the first line names the columns. None: it does if names are asked for, if it has no number in a column
        where the next lines have numbers, or if its names are usual ones such as ``source`` and ``target``.
    directed : {"mutual"}, optional
        As in `CorrelationGraph.from_edges`.

    Raises
    ------
    DataFileError
        With the path, and the line where something is wrong.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "friends.csv")
    ...     _ = path.write_text("from,to,strength\nann,bob,2\nbob,cem,1\n")
    ...     read_graph(path, conductance="strength")
    CorrelationGraph(3 vertices, 2 edges, conductances)
    """
    pairs = read_pairs(path, columns=columns, values=conductance, header=header)
    try:
        # With numbers instead of ids, which would be looked up one by one.
        graph = CorrelationGraph.from_edges(pairs.codes, conductances=pairs.values, directed=directed)
    except EdgeError:
        try:  # again with ids, which the error is to name
            return CorrelationGraph.from_edges(pairs.ids, conductances=pairs.values, directed=directed)
        except EdgeError as error:
            raise pairs.error(error.position, error.problem) from error
    ids = pairs.distinct[graph.ids]
    return CorrelationGraph(graph.edges, len(ids), conductances=graph.conductances, vertices=ids)


def read_pairs(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] = (0, 1),
    values: str | int | None = None,
    header: bool | None = None,
) -> Pairs:
    """Read pairs of ids, in the order of the file and each as often as it is there.

    Parameters are those of `read_graph`; `values` is the name or position of a column of numbers.
    """
    wanted = [*columns, *([] if values is None else [values])]
    is_named = any(isinstance(column, str) for column in wanted)
    table = Table(Path(path), header=True if is_named and header is None else header)
    if wanted[0] == 0 and table.names is not None and not table.names[0]:
        # The index of a data frame, which is written without a name.
        raise DataFileError(table.path, f"the first column has no name; choose columns among {table.names[1:]}")
    positions = [table.position(column) for column in wanted]
    if len(columns) != 2 or len(set(positions)) < len(positions):
        raise ValueError(f"columns must be two different names or positions, and the values another; got {wanted}")
    of_ids = Numbering()
    kinds: list[Kind] = ["key", "key", "number"]
    codes, numbers = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for batch in table.batches(positions, kinds[: len(positions)]):
        codes.append(np.column_stack([of_ids.number(batch[0]), of_ids.number(batch[1])]))
        numbers.extend(column.to_numpy(zero_copy_only=False) for column in batch[2:])
    found = np.concatenate(numbers) if values is not None else None
    if found is not None and np.isnan(found).any():
        raise table.error(int(np.isnan(found).argmax()), f"{table.name(positions[2])} is empty")
    distinct = as_ids(of_ids.strings)
    order = np.argsort(distinct, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Pairs(place[np.concatenate(codes)], distinct[order], found, table.error, table.names is not None)


def read_ids(path: str | os.PathLike[str]) -> Shaped[np.ndarray, " ids"]:
    """Read ids from a text file with one on each line, or the first of several columns; a first line "id" is a header.

    Parameters
    ----------
    path : path-like
        The file.
    """
    path = Path(path)
    with open_binary(path) as stream:
        try:
            text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataFileError(path, "this is not text in UTF-8; ids are read from text, one on each line") from error
    ids = [row[0].strip() for row in csv.reader(io.StringIO(text, newline="")) if row and row[0].strip()]
    ids = ids[1:] if ids and ids[0].lower() in ("id", "ids") else ids
    if not ids:
        raise DataFileError(path, "there are no ids in it")
    return as_ids(ids)


def find_ids(known: Shaped[np.ndarray, " known"], wanted: Shaped[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
    """Return the position of each wanted id among the known ones, -1 where it is unknown.

    Integers match the strings that spell them: one file of the same points may hold a word among its ids, and so
    strings, while another holds integers.

    Examples
    --------
    >>> find_ids(np.array([10, 20, 30]), np.array(["30", "x", "10"], dtype=object)).tolist()
    [2, -1, 0]
    """
    if (known.dtype.kind == "i") != (wanted.dtype.kind == "i"):
        known, wanted = (
            object_array([str(value) for value in ids.ravel().tolist()]).reshape(ids.shape) for ids in (known, wanted)
        )
    return VertexIds(known.copy(), len(known)).find(wanted)


def join(
    features: Features, graph: CorrelationGraph, *, unmatched: Literal["error", "drop"] = "error"
) -> CorrelationGraph:
    """Return the graph with the rows of a table as its vertices, in their order.

    Parameters
    ----------
    features : Features
        The table; without ids, its rows are 0, 1, ....
    graph : CorrelationGraph
        A graph with the same ids; integers match the strings that spell them.
    unmatched : {"error", "drop"}
        What to do with ids that only one of the two has. "error": raise. "drop": leave vertices without a row out with
        their edges, keep rows without a vertex as isolated vertices, and warn.

    Raises
    ------
    ValueError
        If ids do not match; always if no edge is left.

    Examples
    --------
    >>> features = Features(np.zeros((2, 1)), np.array(["cem", "ann"], dtype=object))
    >>> join(features, CorrelationGraph.from_edges([("ann", "cem")])).ids.tolist()
    ['cem', 'ann']
    """
    ids = np.arange(features.n_rows) if features.ids is None else features.ids
    row_of = find_ids(ids, graph.ids)
    ends = np.sort(row_of[graph.edges], axis=1)
    kept = np.flatnonzero(ends[:, 0] >= 0)
    if graph.n_edges and not len(kept):
        raise ValueError(
            f"none of the graph's edges (ids {_some(graph.ids)}) has both ends among the features (ids {_some(ids)}); "
            "check that the two are of the same points"
        )
    parts = [
        (graph.ids[row_of < 0], "in the graph but not in the features"),
        (np.delete(ids, row_of[row_of >= 0]), "in the features but not in the graph"),
    ]
    odd_ids = " and ".join(f"{count(len(odd), 'id')} {where} ({_some(odd)})" for odd, where in parts if len(odd))
    if odd_ids and unmatched == "error":
        raise ValueError(
            f'{odd_ids}; add what is missing, or choose unmatched="drop" to leave out vertices without '
            "features and keep points without edges"
        )
    if odd_ids:
        lost = graph.n_edges - len(kept)
        warnings.warn(f"{odd_ids}; {count(lost, 'edge')} left out", UserWarning, stacklevel=2)
    order = kept[np.lexsort((ends[kept, 1], ends[kept, 0]))]
    conductances = None if graph.conductances is None else graph.conductances[order]
    return CorrelationGraph(ends[order], len(ids), conductances=conductances, vertices=ids)


def _some(ids: np.ndarray) -> str:
    shown = ", ".join(map(str, ids[:_SHOWN].tolist()))
    return f"{shown}, ..." if len(ids) > _SHOWN else shown
