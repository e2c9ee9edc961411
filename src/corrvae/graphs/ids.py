"""Vertex ids: how the names that users give their vertices become rows 0, 1, 2, ... and back."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, final

import numpy as np
from jaxtyping import Int, Shaped


@final
class VertexIds:
    """The distinct ids of a graph's vertices, in vertex order.

    Integers are kept as an int64 array and everything else as an array of objects, so that a string stays the string it
    was and one long id does not widen all others. The ids 0, 1, ..., n - 1 cost nothing until they are asked for.

    Parameters
    ----------
    values
        The ids, or None for 0, 1, ..., n - 1.
    count
        How many there are.
    """

    def __init__(self, values: Shaped[np.ndarray, " vertices"] | None, count: int) -> None:
        if values is not None and _is_range(values):
            values = None
        self._given = None if values is None else frozen(values)
        self.count = count

    @classmethod
    def from_vertices(cls, vertices: Iterable[Any]) -> "VertexIds":
        """Take the ids a caller lists, and refuse one that is listed twice."""
        if isinstance(vertices, range) and vertices == range(len(vertices)):
            return cls(None, len(vertices))
        values = id_array(vertices, "vertices")
        ids = cls(values, len(values))
        ids._refuse_repeats()
        return ids

    @cached_property
    def values(self) -> Shaped[np.ndarray, " vertices"]:
        """The ids as a read-only array."""
        if self._given is not None:
            return self._given
        return frozen(np.arange(self.count))

    @property
    def are_rows(self) -> bool:
        """Whether the ids are 0, 1, ..., n - 1."""
        return self._given is None

    @property
    def are_integers(self) -> bool:
        """Whether the ids are kept as an array of integers."""
        return self._given is None or self._given.dtype.kind == "i"

    def find(self, wanted: Shaped[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
        """Give the vertex index of each id, and -1 where it is not among them."""
        if wanted.dtype.kind == "i" and self.are_integers:
            return self._find_integers(wanted)
        get = self._index_of_id.get
        found = [get(value, -1) for value in wanted.ravel().tolist()]
        return np.array(found, dtype=np.int64).reshape(wanted.shape)

    def find_one(self, value: Any) -> int:
        """Give the vertex index of one id, and -1 when it is not among them."""
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(f"id {value!r} is not hashable") from error
        return int(self.find(_typed([value]))[0])

    def locate_one(self, value: Any) -> int:
        """Give the vertex index of one id, and refuse it when it is not among them."""
        index = self.find_one(value)
        if index < 0:
            raise ValueError(self.describe_unknown(value))
        return index

    def locate(self, ids: Iterable[Any]) -> Int[np.ndarray, " ids"]:
        """Give the vertex index of each id, and refuse the first that is not among them with its position."""
        wanted = id_array(ids, "ids")
        found = self.find(wanted)
        if (found < 0).any():
            position = int(np.flatnonzero(found < 0)[0])
            value = wanted[position : position + 1].tolist()[0]
            raise ValueError(f"position {position}: {self.describe_unknown(value)}")
        return found

    def take(self, indices: Int[np.ndarray, " chosen"]) -> "VertexIds":
        """Give the ids at these distinct vertex indices."""
        return VertexIds(self.values[indices], len(indices))

    def describe_unknown(self, value: Any) -> str:
        """Say that an id is not among the vertices, and hint at a number that should be a string or the reverse."""
        value = value.item() if isinstance(value, np.integer) else value
        sentence = f"id {value!r} is not among the {self.count:,} vertices"
        if self.count and self.are_integers != isinstance(value, int):
            first = self.values[:1].tolist()[0]
            sentence += f", whose ids are like {first!r} ({type(first).__name__}, not {type(value).__name__})"
        return sentence

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VertexIds):
            return NotImplemented
        if self.count != other.count or self.are_rows != other.are_rows:
            return False
        return self.are_rows or self.values.tolist() == other.values.tolist()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @cached_property
    def _index_of_id(self) -> dict[Any, int]:
        return {value: index for index, value in enumerate(self.values.tolist())}

    @cached_property
    def _sorter(self) -> Int[np.ndarray, " vertices"]:
        return np.argsort(self.values, kind="stable")

    def _find_integers(self, wanted: Int[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
        if self.are_rows:
            return np.where((wanted >= 0) & (wanted < self.count), wanted, -1)
        ordered = self.values[self._sorter]
        place = np.minimum(np.searchsorted(ordered, wanted), self.count - 1)
        return np.where(ordered[place] == wanted, self._sorter[place], -1)

    def _refuse_repeats(self) -> None:
        if self.are_rows:
            return
        if self.are_integers:
            ordered = self.values[self._sorter]
            if not (ordered[1:] == ordered[:-1]).any():
                return
        elif len(self._index_of_id) == self.count:
            return
        seen: dict[Any, int] = {}
        for index, value in enumerate(self.values.tolist()):
            if value in seen:
                raise ValueError(
                    f"vertices lists id {value!r} twice, at positions {seen[value]} and {index}; ids must be distinct"
                )
            seen[value] = index


def named(vertices: Iterable[Any] | None, count: int) -> VertexIds:
    """Give the ids of a known number of vertices, 0, 1, ... unless the caller lists others."""
    if vertices is None:
        return VertexIds(None, count)
    ids = VertexIds.from_vertices(vertices)
    if ids.count != count:
        raise ValueError(f"vertices lists {ids.count:,} ids for a graph of {count:,} vertices")
    return ids


def id_array(ids: Iterable[Any], name: str) -> Shaped[np.ndarray, " ids"]:
    """Make a one-dimensional array of ids: int64 when all are integers, objects otherwise.

    Parameters
    ----------
    ids
        A list, array, series or other iterable of hashable ids.
    name
        What to call it in an error.
    """
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"{name} must be a list or array of ids, not the one {type(ids).__name__} {ids!r}")
    array = as_array(ids)
    if array is None:
        listed = list(ids)
    else:
        if array.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}")
        if array.dtype.kind in "iuf" and array.size:
            exact = whole_numbers(array)
            if exact is not None:
                return exact.copy() if exact is array else exact
        listed = plain_list(array)
    for position, value in enumerate(listed):
        if is_missing(value):
            raise ValueError(f"{name} has no id at position {position}: found {value!r}")
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(f"{name} has {value!r} at position {position}, which is not hashable") from error
    return _typed(listed)


def as_array(values: Any) -> np.ndarray | None:
    """View arrays, tensors, series and data frames as a NumPy array; None for other iterables."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    if hasattr(values, "__array__"):
        return np.asarray(values)
    return None


def plain_list(array: Shaped[np.ndarray, " values"]) -> list[Any]:
    """List an array's values as Python's own where they exist; dates would lose their unit and stay NumPy's."""
    return list(array) if array.dtype.kind in "mMV" else array.tolist()


def whole_numbers(array: Shaped[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"] | None:
    """Give a numeric array as int64 when that loses nothing, and None when it would."""
    if array.dtype == np.int64:
        return array
    if array.dtype.kind == "f":
        # 2**63 itself is a float, so the upper bound is strict
        if not (np.isfinite(array).all() and (np.abs(array) < 2.0**63).all()):
            return None
        whole = array.astype(np.int64)
        return whole if (whole == array).all() else None
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        return None
    return array.astype(np.int64)


def is_missing(value: Any) -> bool:
    """Whether a value stands for 'nothing here': None, not a number, and what pandas writes for them."""
    if value is None or (isinstance(value, (float, np.floating)) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def integers_only(values: Iterable[Any]) -> bool:
    """Whether every value is an integer; True and False are not."""
    return all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in set(map(type, values)))


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only."""
    array.setflags(write=False)
    return array


def _typed(values: list[Any]) -> Shaped[np.ndarray, " ids"]:
    if integers_only(values):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    objects = np.empty(len(values), dtype=object)
    # element by element, because NumPy would unpack an id that is a tuple
    for index, value in enumerate(values):
        objects[index] = value
    return objects


def _is_range(values: Shaped[np.ndarray, " vertices"]) -> bool:
    if not len(values):
        return True
    if values.dtype.kind != "i":
        return False
    return bool(values[0] == 0 and values[-1] == len(values) - 1 and (np.diff(values) == 1).all())
