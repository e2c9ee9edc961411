"""Vertex ids: the names that users give vertices, and the positions 0, 1, 2, ... they stand for."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, final

import numpy as np
from jaxtyping import Int, Shaped


@final
class VertexIds:
    """The distinct ids of a graph's vertices, in vertex order; ``values=None`` stands for 0, 1, ..., count - 1.

    Integers are kept as an int64 array and everything else as an array of objects, so that a string stays the string it
    was and one long id does not widen all others. The ids 0, 1, ..., n - 1 take no memory until they are read.
    """

    def __init__(self, values: Shaped[np.ndarray, " vertices"] | None, count: int) -> None:
        self._given = None if values is None or _is_range(values) else frozen(values)
        self.count = count

    @classmethod
    def from_vertices(cls, vertices: Iterable[Any]) -> "VertexIds":
        """Return the ids of a list or array; raise ValueError at an id that occurs twice."""
        if isinstance(vertices, range) and vertices == range(len(vertices)):
            return cls(None, len(vertices))
        values = id_array(vertices, "vertices")
        ids = cls(values, len(values))
        ids._check_distinct()
        return ids

    @classmethod
    def of_rows(cls, vertices: Iterable[Any] | None, count: int) -> "VertexIds":
        """Return the ids of a known number of vertices: 0, 1, ... when `vertices` is None."""
        ids = cls(None, count) if vertices is None else cls.from_vertices(vertices)
        if ids.count != count:
            raise ValueError(f"vertices lists {ids.count:,} ids for a graph of {count:,} vertices")
        return ids

    @cached_property
    def values(self) -> Shaped[np.ndarray, " vertices"]:
        """The ids as a read-only array."""
        return frozen(np.arange(self.count)) if self._given is None else self._given

    @property
    def are_rows(self) -> bool:
        """Whether the ids are 0, 1, ..., n - 1."""
        return self._given is None

    @property
    def are_integers(self) -> bool:
        """Whether the ids are kept as an array of integers."""
        return self._given is None or self._given.dtype.kind == "i"

    def find(self, ids: Iterable[Any]) -> Int[np.ndarray, "*shape"]:
        """Return the position of each id, in an array of the same shape; -1 where an id is unknown."""
        wanted = ids if isinstance(ids, np.ndarray) else id_array(ids, "ids")
        if wanted.dtype.kind == "i" and self.are_integers:
            return self._find_integers(wanted)
        get = self._position_of.get
        return np.array([get(value, -1) for value in wanted.ravel().tolist()], dtype=np.int64).reshape(wanted.shape)

    def find_one(self, value: Any) -> int:
        """Return the position of one id, -1 if it is unknown."""
        return int(self.find(_typed([value]))[0])

    def locate(self, ids: Iterable[Any]) -> Int[np.ndarray, " ids"]:
        """Return the position of each id; raise ValueError at the first unknown one."""
        wanted = id_array(ids, "ids")
        found = self.find(wanted)
        if (found < 0).any():
            place = int(np.flatnonzero(found < 0)[0])
            raise ValueError(f"position {place}: {self.describe_unknown(wanted[place])}")
        return found

    def take(self, positions: Int[np.ndarray, " chosen"]) -> "VertexIds":
        """Return the ids at distinct positions."""
        return VertexIds(self.values[positions], len(positions))

    def describe_unknown(self, value: Any) -> str:
        """Return the sentence for an unknown id, with a hint where a number should be a string or the reverse."""
        value = value.item() if isinstance(value, np.integer) else value
        sentence = f"id {value!r} is not among the {self.count:,} vertices"
        if self.count and self.are_integers != isinstance(value, int):
            first = self.values[:1].tolist()[0]
            sentence += f", whose ids are like {first!r} ({type(first).__name__}, not {type(value).__name__})"
        return sentence

    def __len__(self) -> int:
        return self.count

    def __reduce__(self) -> tuple[Any, ...]:
        return VertexIds, (self._given, self.count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VertexIds):
            return NotImplemented
        if self.count != other.count or self.are_rows != other.are_rows:
            return False
        return self.are_rows or self.values.tolist() == other.values.tolist()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @cached_property
    def _position_of(self) -> dict[Any, int]:
        return {value: position for position, value in enumerate(self.values.tolist())}

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.values, kind="stable")
        return self.values[order], order

    def _find_integers(self, wanted: np.ndarray) -> np.ndarray:
        if self.are_rows:
            return np.where((wanted >= 0) & (wanted < self.count), wanted, -1)
        values, order = self._sorted
        place = np.minimum(np.searchsorted(values, wanted), self.count - 1)
        return np.where(values[place] == wanted, order[place], -1)

    def _check_distinct(self) -> None:
        if self.are_integers:
            distinct = self.are_rows or bool(np.diff(self._sorted[0]).all())
        else:
            distinct = len(self._position_of) == self.count
        first: dict[Any, int] = {}
        for position, value in enumerate([] if distinct else self.values.tolist()):
            if first.setdefault(value, position) != position:
                places = f"{first[value]} and {position}"
                raise ValueError(f"vertices lists id {value!r} twice, at positions {places}; ids must be distinct")


def id_array(ids: Iterable[Any], name: str) -> Shaped[np.ndarray, " ids"]:
    """Return a one-dimensional array of ids: int64 when all are integers, objects otherwise; errors begin by `name`."""
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"{name} must be a list or array of ids, not the one {type(ids).__name__} {ids!r}")
    array = as_array(ids)
    if array is not None and array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if array is not None and array.dtype.kind in "iuf" and array.size:
        exact = whole_numbers(array)
        if exact is not None:
            return exact.copy() if exact is array else exact
    listed = list(ids) if array is None else plain_list(array)
    fault = first_fault(listed)
    if fault is not None:
        raise ValueError(f"{name}, position {fault[0]}: {fault[1]}")
    return _typed(listed)


def first_fault(values: list[Any]) -> tuple[int, str] | None:
    """Return the position of the first value that cannot be an id, and why; None if all can."""
    for position, value in enumerate(values):
        if is_missing(value):
            return position, f"the id is missing (found {value!r})"
        try:
            hash(value)
        except TypeError:
            return position, f"id {value!r} is not hashable"
    return None


def as_array(values: Any) -> np.ndarray | None:
    """Return arrays, tensors, series and data frames as a NumPy array; None for other iterables."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    return np.asarray(values) if hasattr(values, "__array__") else None


def plain_list(array: np.ndarray) -> list[Any]:
    """Return an array's values as Python's own types; dates stay NumPy's, since they would lose their unit."""
    return list(array) if array.dtype.kind in "mMV" else array.tolist()


def object_array(values: list[Any]) -> np.ndarray:
    """Return a one-dimensional array of objects."""
    objects = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):  # one by one, since NumPy would unpack an id that is a tuple
        objects[position] = value
    return objects


def whole_numbers(array: Shaped[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"] | None:
    """Return a numeric array as int64 when that loses nothing, otherwise None."""
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
    """Return whether a value means 'no value': None, NaN, or pandas' NA and NaT."""
    is_nan = isinstance(value, (float, np.floating)) and bool(value != value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def integers_only(values: Iterable[Any]) -> bool:
    """Return whether every value is an integer; True and False are not."""
    return all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in set(map(type, values)))


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array


def _typed(values: list[Any]) -> np.ndarray:
    if integers_only(values):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return object_array(values)


def _is_range(values: np.ndarray) -> bool:
    if not len(values):
        return True
    if values.dtype.kind != "i" or values[0] != 0 or values[-1] != len(values) - 1:
        return False
    return bool((np.diff(values) == 1).all())
