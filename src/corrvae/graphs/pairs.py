"""Pairs of ids, in whatever form they arrive, as pairs of vertex indices.

`code_pairs` numbers the distinct ids of the pairs; `place_pairs` then turns those numbers into vertex indices, which is
where `vertices` comes in. Files number their ids themselves and enter at the second step.
"""

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped
from scipy.sparse import issparse

from corrvae.graphs.ids import VertexIds, as_array, id_array, integers_only, is_missing, plain_list, whole_numbers


class EdgeError(ValueError):
    """A fault at one given pair. Readers of files catch it to say the line instead of the position.

    Attributes
    ----------
    position : int
        Which of the given pairs, from 0.
    problem : str
        The sentence without the place.
    """

    def __init__(self, position: int, problem: str) -> None:
        self.position = position
        self.problem = problem
        super().__init__(f"edge {self.position}: {problem}")

    def __reduce__(self) -> tuple[type["EdgeError"], tuple[int, str]]:
        return EdgeError, (self.position, self.problem)


@dataclass(frozen=True)
class CodedPairs:
    """Pairs as numbers into their distinct ids.

    Attributes
    ----------
    codes
        For each given pair, in the order and direction given, the numbers of its two ids.
    distinct
        The ids that the numbers stand for: sorted when all are integers or all strings, else in order of appearance.
    """

    codes: Int[np.ndarray, "pairs 2"]
    distinct: Shaped[np.ndarray, " ids"]


@dataclass(frozen=True)
class PlacedPairs:
    """Pairs as vertex indices, with the ids of the vertices."""

    pairs: Int[np.ndarray, "pairs 2"]
    ids: VertexIds


def place_edges(
    edges: Iterable[Any], vertices: Iterable[Any] | VertexIds | None, n_vertices: int | None = None
) -> PlacedPairs:
    """Turn pairs of ids, or of vertex indices when the number of vertices is given, into placed pairs."""
    if n_vertices is None:
        return place_pairs(code_pairs(edges), vertices)
    if vertices is not None:
        raise ValueError("give vertices or n_vertices, not both")
    return index_pairs(edges, n_vertices)


def code_pairs(edges: Iterable[Any]) -> CodedPairs:
    """Number the distinct ids of an array or iterable of pairs."""
    _refuse_graphs(edges)
    array = as_array(edges)
    if array is None:
        flat = _flatten(list(edges))
    else:
        array = _shaped(array)
        if array.dtype.kind in "iuf":
            exact = whole_numbers(array)
            if exact is not None:
                return _code_integers(exact)
            _refuse_fractions(array)
        flat = plain_list(array.ravel())
    if flat and integers_only(flat):
        try:
            return _code_integers(np.array(flat, dtype=np.int64).reshape(-1, 2))
        except OverflowError:
            pass
    return _code_hashables(flat)


def index_pairs(edges: Iterable[Any], n_vertices: int) -> PlacedPairs:
    """Take pairs that are vertex indices already, 0 to n_vertices - 1."""
    n_vertices = checked_count(n_vertices)
    _refuse_graphs(edges)
    array = as_array(edges)
    if array is None:
        flat = _flatten(list(edges))
        for position, value in enumerate(flat):
            if not integers_only([value]) and not (isinstance(value, float) and value.is_integer()):
                raise EdgeError(position // 2, f"vertex index {value!r} is not an integer")
        array = np.array(flat).reshape(-1, 2) if flat else np.empty((0, 2), dtype=np.int64)
    array = _shaped(array)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"with n_vertices, edges must be integer vertex indices, not {array.dtype}")
    exact = whole_numbers(array)
    if exact is None:
        _refuse_fractions(array)
        raise ValueError("vertex indices must fit in 64 bits")
    wrong = (exact < 0) | (exact >= n_vertices)
    if wrong.any():
        position, side = np.argwhere(wrong)[0].tolist()
        index = int(exact[position, side])
        fault = "is negative" if index < 0 else f"is past the end of {n_vertices:,} vertices"
        raise EdgeError(position, f"vertex index {index} {fault}")
    return PlacedPairs(exact, VertexIds(None, n_vertices))


def place_pairs(coded: CodedPairs, vertices: Iterable[Any] | VertexIds | None) -> PlacedPairs:
    """Turn numbered ids into vertex indices: those of `vertices`, or the distinct ids' own order."""
    if vertices is None:
        return PlacedPairs(coded.codes, VertexIds(coded.distinct, len(coded.distinct)))
    ids = vertices if isinstance(vertices, VertexIds) else VertexIds.from_vertices(vertices)
    where = ids.find(coded.distinct)
    unknown = where < 0
    if unknown.any():
        position, side = np.argwhere(unknown[coded.codes])[0].tolist()
        value = coded.distinct[coded.codes[position, side]]
        raise EdgeError(position, ids.describe_unknown(value.item() if isinstance(value, np.generic) else value))
    return PlacedPairs(where[coded.codes], ids)


def checked_count(n_vertices: Any) -> int:
    """Take a number of vertices: an integer, not negative."""
    if not isinstance(n_vertices, numbers.Integral) or isinstance(n_vertices, bool):
        raise TypeError(f"n_vertices must be an integer, not {n_vertices!r}")
    if n_vertices < 0:
        raise ValueError(f"n_vertices must not be negative, but is {n_vertices}")
    return int(n_vertices)


def _code_integers(pairs: Int[np.ndarray, "pairs 2"]) -> CodedPairs:
    if not pairs.size:
        return CodedPairs(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64))
    low, high = int(pairs.min()), int(pairs.max())
    if high - low < 4 * pairs.size + 1024:
        # ids that lie close together: one table look-up each instead of a sort
        present = np.zeros(high - low + 1, dtype=bool)
        offsets = pairs - low
        present[offsets.ravel()] = True
        distinct = np.flatnonzero(present) + low
        number = np.cumsum(present) - 1
        return CodedPairs(number[offsets], distinct)
    distinct, codes = np.unique(pairs, return_inverse=True)
    return CodedPairs(codes.reshape(-1, 2), distinct)


def _code_hashables(flat: list[Any]) -> CodedPairs:
    try:
        distinct = list(dict.fromkeys(flat))
    except TypeError:
        _refuse_unhashable(flat)
        raise
    if any(map(is_missing, distinct)):
        position, value = next((k, value) for k, value in enumerate(flat) if is_missing(value))
        raise EdgeError(position // 2, f"an id is missing: found {value!r}")
    if all(isinstance(value, str) for value in distinct):
        distinct.sort()
    number = {value: index for index, value in enumerate(distinct)}
    codes = np.fromiter(map(number.__getitem__, flat), dtype=np.int64, count=len(flat))
    return CodedPairs(codes.reshape(-1, 2), id_array(distinct, "edges"))


def _flatten(pairs: list[Any]) -> list[Any]:
    lengths_right = all(not isinstance(pair, (str, bytes)) and _length(pair) == 2 for pair in pairs)
    if lengths_right:
        return list(chain.from_iterable(pairs))
    for position, pair in enumerate(pairs):
        length = None if isinstance(pair, (str, bytes)) else _length(pair)
        if length is None:
            raise TypeError(f"edge {position} is {pair!r}, not a pair of ids")
        if length != 2:
            hint = "; give conductances separately, as conductances=" if length == 3 else ""
            raise EdgeError(position, f"{pair!r} has {length} entries where a pair of ids is expected{hint}")
    raise AssertionError("unreachable")


def _length(pair: Any) -> int | None:
    return len(pair) if hasattr(pair, "__len__") else None


def _refuse_graphs(edges: Any) -> None:
    """Point to the reader of a graph that is given where pairs are expected."""
    if issparse(edges):
        reader = "from_scipy"
    elif hasattr(edges, "nodes") and hasattr(edges, "is_directed"):
        reader = "from_networkx"
    elif hasattr(edges, "edge_index"):
        reader = "from_pyg"
    elif hasattr(edges, "id_pairs"):
        raise TypeError("edges must be pairs of ids, not a CorrelationGraph; its id_pairs are")
    else:
        return
    raise TypeError(f"edges must be pairs of ids, not {type(edges).__name__}; CorrelationGraph.{reader} reads that")


def _shaped(array: np.ndarray) -> Shaped[np.ndarray, "pairs 2"]:
    if array.shape == (0,):
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        hint = "; CorrelationGraph.from_pyg reads an edge_index of shape (2, m)" if array.shape[:1] == (2,) else ""
        raise ValueError(f"edges must have shape (m, 2), one row an edge, not {array.shape}{hint}")
    return array


def _refuse_fractions(array: np.ndarray) -> None:
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array) | (array != np.floor(array))
        if wrong.any():
            position, side = np.argwhere(wrong)[0].tolist()
            raise EdgeError(position, f"{array[position, side]} is not an integer; ids in a float array must be whole")


def _refuse_unhashable(flat: list[Any]) -> None:
    for position, value in enumerate(flat):
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(f"edge {position // 2}: id {value!r} is not hashable") from error
