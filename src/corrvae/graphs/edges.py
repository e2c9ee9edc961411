"""Edges as users give them become canonical: i < j, sorted, each once, with a count of what was dropped.

`place_pairs` turns pairs of ids into pairs of vertex indices; `canonicalize` turns those into edges.
"""

import numbers
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import issparse

from corrvae.graphs import ids as vertex_ids
from corrvae.graphs.ids import VertexIds, as_array, id_array, whole_numbers

Pairs = Int[np.ndarray, "pairs 2"]
Direction = Literal["either", "mutual", "symmetric"]
"""`either`: a pair in either order is an edge; `mutual`: both orders are needed; `symmetric`: else it is an error."""

# Sums of conductances over repeats may differ in the last digits with the order they came in.
AGREEMENT = 1e-9


class EdgeError(ValueError):
    """A `problem` at the given pair at `position`, from 0; readers of files catch it to name the line instead."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(position, problem)
        self.position, self.problem = position, problem

    def __str__(self) -> str:
        return f"edge {self.position}: {self.problem}"


class DroppedEdgesWarning(UserWarning):
    """Some of the given pairs did not become an edge: repeats, self-loops, one-way edges."""


@dataclass(frozen=True)
class CanonicalEdges:
    """Edges with i < j, sorted and distinct, their conductances, the vertices, and a phrase on what was dropped."""

    edges: Int[np.ndarray, "edges 2"]
    conductances: Float[np.ndarray, " edges"] | None
    ids: VertexIds
    dropped: str = ""


def place_pairs(edges: Iterable[Any], vertices: Iterable[Any] | VertexIds | None = None) -> tuple[Pairs, VertexIds]:
    """Return pairs of ids as vertex indices, with the ids of all vertices; see `CorrelationGraph.from_edges`."""
    codes, distinct = _number_pairs(edges)
    if vertices is None:
        return codes, VertexIds(distinct, len(distinct))
    ids = vertices if isinstance(vertices, VertexIds) else VertexIds.from_vertices(vertices)
    where = ids.find(distinct)
    unknown = (where < 0)[codes]
    if unknown.any():
        position, side = np.argwhere(unknown)[0].tolist()
        raise EdgeError(position, ids.describe_unknown(distinct[codes[position, side]]))
    return where[codes], ids


def index_pairs(edges: Iterable[Any], n_vertices: int) -> Pairs:
    """Return pairs that are vertex indices already as an int64 array; raise EdgeError at one that is out of range."""
    n_vertices = checked_count(n_vertices)
    array = _two_columns(edges)
    if array.dtype.kind not in "iuf":
        _check_whole(array)
        array = np.array(array.tolist())
    exact = whole_numbers(array) if array.dtype.kind in "iuf" else None
    if exact is None:
        _check_whole(array)
        raise ValueError("vertex indices must fit in 64 bits")
    wrong = np.argwhere((exact < 0) | (exact >= n_vertices))
    if len(wrong):
        position, side = wrong[0].tolist()
        raise EdgeError(position, f"vertex index {_out_of_range(exact[position, side], n_vertices)}")
    return exact


def checked_count(n_vertices: Any) -> int:
    """Return a number of vertices as an int; raise if it is negative or not an integer."""
    count = operator.index(n_vertices)
    if count < 0:
        raise ValueError(f"n_vertices must not be negative, but is {n_vertices}")
    return count


def checked_direction(directed: str | None) -> Direction:
    """Return the direction that the parameter `directed` asks for."""
    if directed not in (None, "mutual"):
        raise ValueError(f'directed must be None or "mutual", not {directed!r}')
    return "mutual" if directed else "either"


def check_conductances(values: Any, pairs: Pairs, ids: VertexIds) -> Float[np.ndarray, " pairs"]:
    """Return conductances as a new float64 array; raise EdgeError at the first that is not finite and positive."""
    checked = np.array(values, dtype=np.float64)
    if checked.shape != (len(pairs),):
        raise ValueError(f"conductances must have shape {(len(pairs),)}, one for each edge, not {checked.shape}")
    wrong = np.flatnonzero(~(np.isfinite(checked) & (checked > 0)))
    if len(wrong):
        position, edge = int(wrong[0]), name_edge(pairs[wrong[0]], ids)
        fault = f"has conductance {checked[position]}; it must be a finite and positive number"
        raise EdgeError(position, f"{edge} {fault}")
    return checked


def name_edge(pair: Int[np.ndarray, "2"], ids: VertexIds) -> str:
    """Return an edge written by its ids, for errors."""
    first, second = ids.values[pair].tolist()
    return f"({first!r}, {second!r})"


def canonicalize(
    pairs: Pairs,
    ids: VertexIds,
    conductances: Any = None,
    *,
    direction: Direction = "either",
    keep_isolated: bool = True,
) -> CanonicalEdges:
    """Sort pairs of vertex indices into canonical edges.

    Conductances of repeats in one direction add up, and the two directions must agree.
    """
    count = max(ids.count, 1)
    given = None if conductances is None else check_conductances(conductances, pairs, ids)
    first, second = pairs[:, 0], pairs[:, 1]
    proper = np.flatnonzero(first != second)
    if len(proper) < len(first):
        first, second = first[proper], second[proper]
    # one number for each ordered pair, the two orders side by side: sorting these does everything else
    arcs = 2 * (np.minimum(first, second) * count + np.maximum(first, second)) + (first > second)
    origin, values = proper, None
    if given is None:
        arcs.sort()
        arcs = arcs[_starts(arcs)]
    else:
        order = np.argsort(arcs, kind="stable")
        starts = _starts(arcs[order])
        arcs, origin = arcs[order][starts], proper[order][starts]
        values = np.add.reduceat(given[proper][order], starts) if len(starts) else np.empty(0)
    repeats = len(proper) - len(arcs) if given is None else 0

    starts = _starts(arcs >> 1)
    both = np.diff(np.append(starts, len(arcs))) == 2
    edges = np.column_stack(np.divmod(arcs[starts] >> 1, count)).astype(np.int64, copy=False)
    if direction == "symmetric" and not both.all():
        k = int(np.argmin(both))
        i, j = edges[k][:: -1 if arcs[starts[k]] & 1 else 1].tolist()
        raise ValueError(
            f"the adjacency is not symmetric: it has an entry at ({i}, {j}) and none at ({j}, {i}). Add its transpose,"
            ' or pass directed="mutual" to keep only edges that are there in both directions'
        )
    if values is not None:
        _check_agreement(values, starts[both], edges[both], origin, ids)
        values = values[starts]
    one_way = 0
    if direction == "mutual":
        one_way = int(np.count_nonzero(~both))
        edges, values = edges[both], None if values is None else values[both]
    isolated = 0
    if not keep_isolated:
        touched = np.zeros(ids.count, dtype=bool)
        touched[edges.ravel()] = True
        isolated = ids.count - int(touched.sum())
        edges, ids = (np.cumsum(touched) - 1)[edges], ids.take(np.flatnonzero(touched))
    dropped = _describe_dropped(repeats, len(pairs) - len(proper), one_way, isolated)
    return CanonicalEdges(edges, values, ids, dropped)


def check_canonical(edges: Any, n_vertices: int, conductances: Any, vertices: Iterable[Any] | None) -> CanonicalEdges:
    """Return edges that must be canonical already; raise EdgeError at the first that is not."""
    pairs = index_pairs(edges, n_vertices)
    ids = VertexIds.of_rows(vertices, int(n_vertices))
    codes = pair_codes(pairs, n_vertices)
    wrong = (pairs[:, 0] >= pairs[:, 1]) | np.append(False, codes[1:] <= codes[:-1])[: len(codes)]
    if wrong.any():
        position = int(np.argmax(wrong))
        raise EdgeError(
            position,
            f"{pairs[position].tolist()} is not canonical: edges must have i < j and be sorted and distinct;"
            " CorrelationGraph.from_edges takes them in any order",
        )
    values = None if conductances is None else check_conductances(conductances, pairs, ids)
    return CanonicalEdges(pairs.copy(), values, ids)


def induced_edges(
    edges: Int[np.ndarray, "edges 2"], count: int, chosen: Int[np.ndarray, " chosen"]
) -> tuple[Int[np.ndarray, "kept 2"], Int[np.ndarray, " kept"]]:
    """Return the canonical edges among chosen vertices, numbered in their order, and which edges those were."""
    number = np.full(count, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    renumbered = number[edges]
    kept = np.flatnonzero((renumbered >= 0).all(axis=1))
    renumbered = np.sort(renumbered[kept], axis=1)
    if len(chosen) > 1 and not (np.diff(chosen) > 0).all():
        order = np.argsort(pair_codes(renumbered, len(chosen)))
        renumbered, kept = renumbered[order], kept[order]
    return renumbered, kept


def pair_codes(pairs: Pairs, count: int) -> Int[np.ndarray, " pairs"]:
    """Return one number for each unordered pair, in the order in which canonical edges are sorted."""
    first, second = pairs.T
    return np.minimum(first, second) * max(count, 1) + np.maximum(first, second)


def edge_positions(edges: Int[np.ndarray, "edges 2"], count: int, pairs: Pairs) -> Int[np.ndarray, " pairs"]:
    """Return the position of each pair, in either order, among canonical edges; -1 for one that is no edge."""
    own, wanted = pair_codes(edges, count), pair_codes(pairs, count)
    if not len(own):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
    return np.where(own[place] == wanted, place, -1)


def _number_pairs(edges: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return each pair as numbers into the distinct ids, and those ids."""
    array = _two_columns(edges)
    exact = whole_numbers(array) if array.dtype.kind in "iuf" else None
    if exact is None:
        if array.dtype.kind == "f":
            _check_whole(array)
        return _number_hashables(vertex_ids.plain_list(array.ravel()))
    distinct, codes = np.unique(exact, return_inverse=True)
    return codes.reshape(-1, 2), distinct


def _number_hashables(flat: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    try:
        distinct = list(dict.fromkeys(flat))
        faulty = any(map(vertex_ids.is_missing, distinct))
    except TypeError:
        distinct, faulty = [], True
    fault = vertex_ids.first_fault(flat) if faulty else None
    if fault is not None:
        raise EdgeError(fault[0] // 2, fault[1])
    if all(isinstance(value, str) for value in distinct):
        distinct.sort()
    number = {value: index for index, value in enumerate(distinct)}
    codes = np.fromiter(map(number.__getitem__, flat), dtype=np.int64, count=len(flat))
    return codes.reshape(-1, 2), id_array(distinct, "edges")


def _two_columns(edges: Any) -> np.ndarray:
    """Return pairs in whatever form as an array of shape (m, 2): of integers if all are, otherwise of objects."""
    array = as_array(edges)
    if array is None:
        if issparse(edges) or any(hasattr(edges, name) for name in ("nodes", "edge_index", "id_pairs")):
            readers = "from_scipy, from_networkx and from_pyg read graphs"
            raise TypeError(f"edges must be pairs of ids, not {type(edges).__name__}; CorrelationGraph.{readers}")
        flat = _flatten(list(edges))
        array = vertex_ids.object_array(flat).reshape(-1, 2)
        if vertex_ids.integers_only(flat):
            try:
                return array.astype(np.int64)
            except OverflowError:
                pass
        return array
    if array.shape in ((0,), (0, 2)):
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        hint = "; CorrelationGraph.from_pyg reads an edge_index of shape (2, m)" if array.shape[:1] == (2,) else ""
        raise ValueError(f"edges must have shape (m, 2), one row an edge, not {array.shape}{hint}")
    return array


def _flatten(pairs: list[Any]) -> list[Any]:
    for position, pair in enumerate(pairs):
        if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__"):
            raise TypeError(f"edge {position} is {pair!r}, not a pair of ids")
        if len(pair) != 2:
            hint = "; give conductances separately, as conductances=" if len(pair) == 3 else ""
            raise EdgeError(position, f"{pair!r} has {len(pair)} entries where a pair of ids is expected{hint}")
    return list(chain.from_iterable(pairs))


def _check_whole(array: np.ndarray) -> None:
    for position, value in enumerate(array.ravel().tolist()):
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or value % 1 != 0:
            raise EdgeError(position // 2, f"{value!r} is not an integer")


def _out_of_range(index: Any, count: int, place: str = "") -> str:
    return f"{index}{place} " + ("is negative" if index < 0 else f"is past the end of {count:,} vertices")


def _starts(ordered: np.ndarray) -> np.ndarray:
    """Return where each run of equal values begins in a sorted array."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def _check_agreement(
    values: np.ndarray, forth: np.ndarray, edges: np.ndarray, origin: np.ndarray, ids: VertexIds
) -> None:
    """Raise EdgeError at the first edge whose conductances at arcs `forth` and `forth + 1` differ."""
    one, other = values[forth], values[forth + 1]
    wrong = np.abs(one - other) > AGREEMENT * np.maximum(one, other)
    if wrong.any():
        k = int(np.argmax(wrong))
        fault = f"has conductance {one[k]} in one direction and {other[k]} in the other; the two must agree"
        position = int(max(origin[forth[k]], origin[forth[k] + 1]))
        raise EdgeError(position, f"{name_edge(edges[k], ids)} {fault}")


def _describe_dropped(repeats: int, self_loops: int, one_way: int, isolated: int) -> str:
    parts = [
        f"{count:,} {one if count == 1 else many}"
        for count, one, many in (
            (repeats, "repeated edge", "repeated edges"),
            (self_loops, "self-loop", "self-loops"),
            (one_way, "one-way edge", "one-way edges"),
            (isolated, "vertex left without an edge", "vertices left without an edge"),
        )
        if count
    ]
    phrase = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return phrase + ("; keep_isolated=True or vertices= keeps such vertices" if isolated else "")
