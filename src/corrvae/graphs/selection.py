"""Parts of a graph: vertex indices as callers give them, induced edges, and where pairs stand among the edges."""

import numbers
from types import EllipsisType
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from corrvae.graphs.ids import as_array, whole_numbers


def vertex_indices(key: Any, count: int) -> Int[np.ndarray, " chosen"]:
    """Take a slice, a boolean mask or integer indices as distinct vertex indices.

    Parameters
    ----------
    key
        What stands in the square brackets. scikit-learn writes ``[indices, ...]``.
    count
        The number of vertices.
    """
    if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], EllipsisType):
        key = key[0]
    if isinstance(key, slice):
        return np.arange(count)[key]
    if isinstance(key, numbers.Integral):
        raise TypeError(f"graph[{key}] names one vertex; graph[[{key}]] is its subgraph")
    array = as_array(key)
    array = np.asarray(key) if array is None else array
    if array.ndim != 1:
        raise ValueError(f"vertex indices must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind == "b":
        if len(array) != count:
            raise ValueError(f"a mask of {len(array):,} entries does not fit a graph of {count:,} vertices")
        return np.flatnonzero(array)
    indices = _integer_indices(array)
    wrong = np.flatnonzero((indices < 0) | (indices >= count))
    if len(wrong):
        index = int(indices[wrong[0]])
        fault = "is negative" if index < 0 else f"is past the end of {count:,} vertices"
        raise IndexError(f"vertex index {index} at position {wrong[0]} {fault}")
    _refuse_repeats(indices, count)
    return indices


def induced_edges(
    edges: Int[np.ndarray, "edges 2"], count: int, chosen: Int[np.ndarray, " chosen"]
) -> tuple[Int[np.ndarray, "kept 2"], Int[np.ndarray, " kept"]]:
    """Give the canonical edges among chosen vertices, numbered in their order, and which edges those were."""
    number = np.full(count, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    renumbered = number[edges]
    kept = np.flatnonzero((renumbered >= 0).all(axis=1))
    renumbered = np.sort(renumbered[kept], axis=1)
    if len(chosen) > 1 and not (np.diff(chosen) > 0).all():
        order = np.argsort(pair_codes(renumbered, len(chosen)))
        renumbered, kept = renumbered[order], kept[order]
    return renumbered, kept


def pair_codes(pairs: Int[np.ndarray, "pairs 2"], count: int) -> Int[np.ndarray, " pairs"]:
    """Give one number an unordered pair, in the order in which canonical edges are sorted."""
    first, second = pairs.T
    return np.minimum(first, second) * max(count, 1) + np.maximum(first, second)


def edge_positions(
    edges: Int[np.ndarray, "edges 2"], count: int, pairs: Int[np.ndarray, "pairs 2"]
) -> Int[np.ndarray, " pairs"]:
    """Give the position of each pair, in either order, among canonical edges, and -1 for one that is no edge."""
    own, wanted = pair_codes(edges, count), pair_codes(pairs, count)
    if not len(own):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
    return np.where(own[place] == wanted, place, -1)


def _integer_indices(array: Shaped[np.ndarray, " chosen"]) -> Int[np.ndarray, " chosen"]:
    if not array.size:
        return np.empty(0, dtype=np.int64)
    exact = whole_numbers(array) if array.dtype.kind in "iu" else None
    if exact is None:
        raise TypeError(
            f"vertex index {array.tolist()[0]!r} is not an integer (found {array.dtype}); to select by id use subgraph"
        )
    return exact


def _refuse_repeats(indices: Int[np.ndarray, " chosen"], count: int) -> None:
    times = np.bincount(indices, minlength=count)
    if (times > 1).any():
        index = int(np.flatnonzero(times > 1)[0])
        raise ValueError(f"vertex index {index} occurs {times[index]} times; a subgraph has each vertex once")
