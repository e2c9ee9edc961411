"""Edges and lists of ids from files, and the join of a graph with a table of features by id."""

import csv
import io
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.edges import EdgeError
from corrvae.graphs.ids import VertexIds, id_array, object_array
from corrvae.io.arrays import Features
from corrvae.io.columns import ITEM_NAMES, Numbering, Table, as_ids, count, looks_like, open_binary, stem

_SHOWN = 5
# Up to this share of second ids being rows, where most first ones are, a file is of rows and items, not of edges.
_FEW, _MOST = 0.05, 0.5

_logger = logging.getLogger("corrvae.io")


@final
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of ids in the order of a file, as positions (`codes`) in `distinct` sorted ids, with a number for each.

    ``error(k, problem)`` returns a `DataFileError` that names the line of the k-th pair. `names` are those of the
    columns of ids; without, the first pair may be names that were not recognised.
    """

    codes: Int[np.ndarray, "pairs 2"]
    distinct: Shaped[np.ndarray, " ids"]
    values: Float[np.ndarray, " pairs"] | None
    error: Callable[[int, str], DataFileError]
    names: list[str] | None

    @property
    def ids(self) -> Shaped[np.ndarray, "pairs 2"]:
        """The pairs of ids."""
        return self.distinct[self.codes]


def read_graph(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] = (0, 1),
    conductance: str | int | None = "auto",
    header: bool | None = None,
    directed: Literal["mutual"] | None = None,
    rows: Shaped[np.ndarray, " rows"] | None = None,
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
        Name or position of the column of conductances. "auto": the third column, if it holds positive numbers that
        differ and are no times; otherwise a line of the log has the reason why it is not used. None: no column.
    header : bool, optional
        Whether the first line names the columns. None: it does if names are asked for, if it has no number in a column
        where the next lines have numbers, or if its names are usual ones such as ``source`` and ``target``.
    directed : {"mutual"}, optional
        None: a pair in either order is an edge, and a line of the log counts those given in both. "mutual": only
        pairs given in both orders are edges.
    rows : ndarray, optional
        Ids of the rows that the graph is of. A file whose second column holds other things is then an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "friends.csv")
    ...     _ = path.write_text("from,to,strength\nann,bob,2\nbob,cem,1\n")
    ...     read_graph(path)
    CorrelationGraph(3 vertices, 2 edges, conductances)
    """
    is_auto = conductance == "auto"
    values = _third_column(Path(path), columns, header) if is_auto else conductance
    pairs = read_pairs(path, columns=columns, values=values, header=header)
    if rows is not None:
        _check_ends(Path(path), pairs, rows)
    if is_auto and pairs.values is not None:
        pairs = _with_conductances(Path(path), pairs)
    if directed is None:
        _report_merged(Path(path), pairs)
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


def _open(path: Path, columns: Sequence[str | int], header: bool | None) -> tuple[Table, list[int]]:
    is_named = any(isinstance(column, str) for column in columns)
    table = Table(path, header=True if is_named and header is None else header)
    if columns[0] == 0 and table.names is not None and not table.names[0]:
        # The index of a data frame, which is written without a name.
        raise DataFileError(path, f"the first column has no name; choose columns among {table.names[1:]}")
    return table, [table.position(column) for column in columns]


def _third_column(path: Path, columns: Sequence[str | int], header: bool | None) -> int | None:
    """Return the position of a third column of numbers; a line of the log names one that is not used."""
    table, positions = _open(path, columns, header)
    if table.n_columns < 3 or positions != [0, 1]:
        return None
    cells = [row[2] for row in table.sample]
    kind = looks_like(cells)
    if kind in ("ids", "numbers") and cells and all(cells):
        return 2
    holds = kind if kind in ("times", "words") else "empty cells"
    _logger.info("%s: %s holds %s and is not used", path, table.name(2), holds)
    return None


def _with_conductances(path: Path, pairs: Pairs) -> Pairs:
    """Return pairs with their numbers if these can be conductances, otherwise without; the log has which."""
    values: np.ndarray = pairs.values  # pyright: ignore[reportAssignmentType]
    reason = None
    if not (np.isfinite(values) & (values > 0)).all():
        reason = "holds numbers that are not positive"
    elif not len(values) or (values == values[0]).all():
        reason = "is the same everywhere"
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                CorrelationGraph.from_edges(pairs.codes, conductances=values)
        except EdgeError:
            reason = "differs between the two directions of an edge"
    if reason is None:
        _logger.info("%s: the third column is used as conductances of the edges", path)
        return pairs
    _logger.info("%s: the third column %s and is not used", path, reason)
    return replace(pairs, values=None)


def _report_merged(path: Path, pairs: Pairs) -> None:
    """Log how many edges were given in both directions, and count once."""
    first, second = np.unique(pairs.codes[pairs.codes[:, 0] != pairs.codes[:, 1]], axis=0).T
    size = max(1, len(pairs.distinct))
    n_both = int(np.isin(first * size + second, second * size + first).sum()) // 2
    if n_both:
        edges = count(len(first) - n_both, "edge")
        _logger.info("%s: %s from %s, %s in both directions", path, edges, count(len(first), "pair"), f"{n_both:,}")


def _check_ends(path: Path, pairs: Pairs, rows: np.ndarray) -> None:
    """Raise if first ids are rows and second ones are not: then this is a table of rows and items."""
    if pairs.names is not None and [stem(name) in ITEM_NAMES for name in pairs.names] == [False, True]:
        raise DataFileError(
            path,
            f"its second column is named {pairs.names[1]!r}, so this is a table of features rather than a graph; the "
            "graph is a file of pairs of rows",
        )
    is_row = find_ids(rows, pairs.distinct) >= 0
    shares = [float(is_row[np.unique(pairs.codes[:, side])].mean()) if len(pairs.codes) else 1.0 for side in (0, 1)]
    if shares[0] >= _MOST and shares[1] <= _FEW:
        odd = pairs.distinct[np.setdiff1d(pairs.codes[:, 1], np.flatnonzero(is_row))]
        raise DataFileError(
            path,
            f"its second column holds ids that are no rows of the features ({_some(odd)}), so this is a table of "
            "features rather than a graph; the graph is a file of pairs of rows",
        )


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
    table, positions = _open(Path(path), wanted, header)
    if len(columns) != 2 or len(set(positions)) < len(positions):
        raise ValueError(f"columns must be two different names or positions, and the values another; got {wanted}")
    of_ids = Numbering()
    codes, numbers = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for batch in table.batches(positions[:2], positions[2:]):
        codes.append(np.column_stack([of_ids.number(batch[0]), of_ids.number(batch[1])]))
        numbers.extend(column.to_numpy(zero_copy_only=False) for column in batch[2:])
    found = np.concatenate(numbers) if values is not None else None
    if found is not None and np.isnan(found).any():
        raise table.error(int(np.isnan(found).argmax()), f"{table.name(positions[2])} is empty")
    distinct, place = np.unique(as_ids(of_ids.strings), return_inverse=True)
    names = None if table.names is None else [table.names[k] for k in positions[:2]]
    return Pairs(place[np.concatenate(codes)], distinct, found, table.error, names)


def read_groups(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] = (0, 1),
    header: bool | None = None,
    rows: Shaped[np.ndarray, " rows"] | None = None,
) -> dict[Any, list[Any]]:
    """Read who belongs to which group from a long table (id, group), for `corrvae.CorrelationGraph.from_groups`.

    Where the ids of groups are those of points too (both are numbers, say), groups are named after their column:
    ``household 7``. A line of the log says so. `rows` are the ids of all points, as the members are to be spelled: 7
    where the file has "7".
    """
    pairs = read_pairs(path, columns=columns, header=header)
    listed = [list(map(str, pairs.ids[:, side].tolist())) for side in (0, 1)]
    points, names = as_ids(listed[0]).tolist(), as_ids(listed[1]).tolist()
    taken = set(listed[0])
    if rows is not None:
        taken.update(map(str, rows.tolist()))
        places = find_ids(rows, as_ids(listed[0])).tolist()
        points = [name if place < 0 else rows.item(place) for name, place in zip(points, places, strict=True)]
    if not taken.isdisjoint(listed[1]):
        word = "group" if pairs.names is None else pairs.names[1]
        names = [f"{word} {name}" for name in names]
        _logger.info("%s: groups have ids that points have too, and are named %r, ...", path, names[0])
    members: dict[Any, list[Any]] = {}
    for name, point in zip(names, points, strict=True):
        members.setdefault(name, []).append(point)
    return members


def read_ids(path: str | os.PathLike[str]) -> Shaped[np.ndarray, " ids"]:
    """Read ids from a text file, one on each line, or the first of several columns; a first line "id" is a header."""
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
    strings, while another holds integers, or both.
    """
    if not known.dtype.kind == wanted.dtype.kind == "i" and (_hold_integers(known) or _hold_integers(wanted)):
        known, wanted = (
            object_array([str(value) for value in ids.ravel().tolist()]).reshape(ids.shape) for ids in (known, wanted)
        )
    return VertexIds(known.copy(), len(known)).find(wanted)


def _hold_integers(ids: np.ndarray) -> bool:
    return ids.dtype.kind == "i" or any(type(value) is int for value in ids.ravel().tolist())


def join(features: Features, graph: CorrelationGraph, *, keep_bare: bool = False) -> CorrelationGraph:
    """Return the graph with the rows of a table as its vertices, in their order; raise ValueError if no edge is left.

    Rows without an edge are isolated vertices. Vertices without a row are left out with their edges, and a warning
    counts them; with `keep_bare` they stay, behind the rows.
    """
    ids = np.arange(features.n_rows) if features.ids is None else features.ids
    place = find_ids(ids, graph.ids)
    bare = np.flatnonzero(place < 0)
    known = place[graph.edges] >= 0
    if graph.n_edges and not (known.any(axis=1) if keep_bare else known.all(axis=1)).any():
        raise ValueError(
            f"none of the graph's edges (ids {_some(graph.ids)}) has {'an end' if keep_bare else 'both ends'} among "
            f"the features (ids {_some(ids)}); check that the two are of the same points"
        )
    if keep_bare and len(bare):
        place[bare] = len(ids) + np.arange(len(bare))
        ids = id_array([*ids.tolist(), *graph.ids[bare].tolist()], "ids")
    ends = np.sort(place[graph.edges], axis=1)
    kept = np.flatnonzero(ends[:, 0] >= 0)
    if len(bare) and not keep_bare:
        lost = count(graph.n_edges - len(kept), "edge")
        named = f"{count(len(bare), 'id')} in the graph but not in the features ({_some(graph.ids[bare])})"
        warnings.warn(f"{named}; {lost} left out", UserWarning, stacklevel=2)
    order = kept[np.lexsort((ends[kept, 1], ends[kept, 0]))]
    conductances = None if graph.conductances is None else graph.conductances[order]
    is_group = np.zeros(len(ids), dtype=bool)
    is_group[place[graph.is_group & (place >= 0)]] = True
    return CorrelationGraph(ends[order], len(ids), conductances=conductances, vertices=ids, is_group=is_group)


def _some(ids: np.ndarray) -> str:
    shown = ", ".join(map(str, ids[:_SHOWN].tolist()))
    return f"{shown}, ..." if len(ids) > _SHOWN else shown
