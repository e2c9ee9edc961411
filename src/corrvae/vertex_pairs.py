"""Pairs of vertices as users write them: lists or arrays, of places or of ids."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from corrvae.graphs.ids import VertexIds, as_array, id_array, integers_only, whole_numbers


def as_pairs(pairs: Any, vertices: VertexIds) -> Int[np.ndarray, "pairs 2"]:
    """Give pairs as an array of places, and refuse what does not join two different vertices.

    Parameters
    ----------
    pairs
        List or array of pairs. Whole numbers are places, from 0 on; anything else is looked up among the ids.
    vertices
        How many vertices there are, and their ids.

    Examples
    --------
    >>> vertices = VertexIds.from_vertices(["ann", "bob", "cem"])
    >>> as_pairs([(0, 2), (1, 2)], vertices).tolist() == as_pairs([("ann", "cem"), ("bob", "cem")], vertices).tolist()
    True
    """
    array = _two_columns(pairs)
    places = _whole(array) if array.dtype.kind in "iuf" else find_places(array, vertices)
    outside = np.flatnonzero(((places < 0) | (places >= vertices.count)).any(1))
    if len(outside):
        sentence = f"pair {outside[0]} is {places[outside[0]].tolist()}, but vertices are numbered from 0 to "
        sentence += str(vertices.count - 1)
        if vertices.are_integers and not vertices.are_rows:
            sentence += "; numbers are places here, and `locate` gives the places of ids"
        raise ValueError(sentence)
    loops = np.flatnonzero(places[:, 0] == places[:, 1])
    if len(loops):
        raise ValueError(f"pair {loops[0]} joins vertex {places[loops[0], 0]} to itself")
    return places


def find_places(pairs: Any, vertices: VertexIds) -> Int[np.ndarray, "pairs 2"]:
    """Look up pairs of ids, also of ids that are numbers.

    Examples
    --------
    >>> find_places([(30, 10)], VertexIds.from_vertices([10, 20, 30]))
    array([[2, 0]])
    """
    wanted = id_array(_two_columns(pairs).reshape(-1), "pairs")
    found = vertices.find(wanted)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        value = wanted[unknown[:1]].tolist()[0]
        raise ValueError(f"pair {unknown[0] // 2}: {vertices.describe_unknown(value)}")
    return found.reshape(-1, 2)


def _two_columns(pairs: Any) -> Shaped[np.ndarray, "pairs 2"]:
    array = as_array(pairs)
    if array is None:
        array = _listed(list(pairs)) if isinstance(pairs, Iterable) else np.asarray(pairs)
    if array.dtype.kind == "b":
        raise TypeError("pairs must be places or ids of vertices, not True and False")
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        advice = "; a single pair is a list of one, [(i, j)]" if array.shape == (2,) else ""
        raise ValueError(f"pairs must have two columns, the two ends of each; got shape {array.shape}{advice}")
    if array.dtype.kind == "O" and integers_only(array.ravel().tolist()):
        return array.astype(np.int64)
    return array


def _listed(pairs: list[Any]) -> np.ndarray:
    """Make an array of a list, where an id may be a tuple, and a number beside a string stays a number."""
    kinds = {type(pair) for pair in pairs}
    if not kinds <= {tuple, list, np.ndarray}:
        return np.empty(len(pairs), dtype=object)  # no pairs at all: its shape says so
    lengths = [len(pair) for pair in pairs]
    if any(length != 2 for length in lengths):
        position = next(position for position, length in enumerate(lengths) if length != 2)
        raise ValueError(f"pair {position} is {pairs[position]!r}, which has {lengths[position]} ends, not 2")
    ends = np.empty((len(pairs), 2), dtype=object)
    for position, (first, second) in enumerate(pairs):
        ends[position, 0], ends[position, 1] = first, second
    numbers = all(issubclass(kind, int | float | np.number) for kind in set(map(type, ends.ravel().tolist())))
    return np.array(ends.tolist()) if numbers and len(pairs) else ends


def _whole(array: np.ndarray) -> Int[np.ndarray, "pairs 2"]:
    places = whole_numbers(array)
    if places is None:
        with np.errstate(invalid="ignore"):
            odd = np.flatnonzero((array != np.floor(array)).any(1) | ~np.isfinite(array).all(1))
        pair = int(odd[0]) if len(odd) else 0
        raise ValueError(f"pair {pair} is {array[pair].tolist()}, but the places of vertices are whole numbers")
    return places
