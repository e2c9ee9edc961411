"""Given pairs in, canonical edges out: i < j, sorted, each once, with a count of what was dropped on the way."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from corrvae.graphs.ids import VertexIds, as_array, named
from corrvae.graphs.pairs import EdgeError, PlacedPairs, index_pairs

Direction = Literal["either", "mutual", "symmetric"]
"""`either`: a pair in either order is an edge; `mutual`: only both orders make one; `symmetric`: both must be there."""

# Sums of conductances over repeats may differ in the last digits with the order they came in.
AGREEMENT = 1e-9

# SciPy's graph routines count vertices in 32 bits.
MOST_VERTICES = 2**31 - 1


class DroppedEdgesWarning(UserWarning):
    """Some of what was given did not become an edge: repeats, self-loops, one-way edges.

    Examples
    --------
    >>> import warnings
    >>> from corrvae import CorrelationGraph
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     graph = CorrelationGraph.from_edges([(0, 1), (1, 0), (1, 1)])
    >>> graph.n_edges, said[0].category.__name__
    (1, 'DroppedEdgesWarning')
    """


@dataclass(frozen=True)
class Dropped:
    """How much of what was given did not become an edge or a vertex."""

    repeats: int = 0
    self_loops: int = 0
    one_way: int = 0
    vertices: int = 0

    def __str__(self) -> str:
        parts = [
            _count(self.repeats, "repeated edge"),
            _count(self.self_loops, "self-loop"),
            _count(self.one_way, "one-way edge"),
            _count(self.vertices, "vertex left without an edge", "vertices left without an edge"),
        ]
        said = [part for part in parts if part]
        return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)

    def warn(self, stacklevel: int, source: str | None = None) -> None:
        """Report everything in one warning, and nothing when nothing was dropped."""
        if str(self):
            where = f"{source}: " if source else ""
            message = f"{where}dropped {self}"
            if self.vertices:
                message += "; keep_isolated=True or vertices= keeps such vertices"
            warnings.warn(message, DroppedEdgesWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class CanonicalEdges:
    """Edges with i < j, sorted and distinct, their conductances, the vertices, and what was dropped."""

    edges: Int[np.ndarray, "edges 2"]
    conductances: Float[np.ndarray, " edges"] | None
    ids: VertexIds
    dropped: Dropped


def canonicalize(
    placed: PlacedPairs,
    conductances: Float[np.ndarray, " pairs"] | None = None,
    direction: Direction = "either",
    keep_isolated: bool = True,
) -> CanonicalEdges:
    """Sort pairs into canonical edges.

    Parameters
    ----------
    placed
        The pairs as vertex indices, in the directions given.
    conductances
        One a pair, checked; those of repeats in one direction add up, and the two directions must agree.
    direction
        Which pairs make an edge.
    keep_isolated
        Whether vertices that are left without an edge stay.
    """
    ids, count = placed.ids, max(placed.ids.count, 1)
    if count > MOST_VERTICES:
        raise ValueError(f"{count:,} vertices are more than the {MOST_VERTICES:,} a graph can have")
    first, second = placed.pairs[:, 0], placed.pairs[:, 1]
    proper = np.flatnonzero(first != second)
    if len(proper) < len(first):
        first, second = first[proper], second[proper]
    # one number an ordered pair, the two orders side by side: sorting these does everything else
    arcs = 2 * (np.minimum(first, second) * count + np.maximum(first, second)) + (first > second)
    if conductances is None:
        arcs, values, origin = _distinct(arcs), None, None
    else:
        order = np.argsort(arcs, kind="stable")
        starts = _starts(arcs[order])
        with np.errstate(over="ignore"):
            values = np.add.reduceat(conductances[proper][order], starts) if len(starts) else np.empty(0)
        arcs, origin = arcs[order][starts], proper[order][starts]
        _refuse_overflow(values, origin, placed)
    repeats = 0 if conductances is not None else len(proper) - len(arcs)

    codes = arcs >> 1
    starts = _starts(codes)
    both = np.diff(np.append(starts, len(codes))) == 2
    codes = codes[starts]
    edges = np.column_stack(np.divmod(codes, count)).astype(np.int64, copy=False)
    if direction == "symmetric" and not both.all():
        _refuse_asymmetry(edges, arcs[starts], both)
    if values is not None and origin is not None:
        _check_agreement(values, starts, both, edges, origin, ids)
        values = values[starts]
    one_way = 0
    if direction == "mutual":
        one_way = int(np.count_nonzero(~both))
        edges = edges[both]
        values = values if values is None else values[both]
    dropped = Dropped(repeats, len(placed.pairs) - len(proper), one_way)
    canonical = CanonicalEdges(edges, values, ids, dropped)
    return canonical if keep_isolated else _without_isolated(canonical)


def check_canonical(edges: Any, n_vertices: int, conductances: Any, vertices: Iterable[Any] | None) -> CanonicalEdges:
    """Take edges that must be canonical already, and refuse the first that is not."""
    placed = index_pairs(edges, n_vertices)
    ids = named(vertices, placed.ids.count)
    first, second = placed.pairs.T
    codes = first * max(n_vertices, 1) + second
    wrong = (first >= second) | np.append(False, codes[1:] <= codes[:-1])[: len(codes)]
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        raise EdgeError(
            position,
            f"{placed.pairs[position].tolist()} is not canonical: edges must have i < j and be sorted and distinct;"
            " CorrelationGraph.from_edges takes them as they come",
        )
    placed = PlacedPairs(placed.pairs, ids)
    return CanonicalEdges(placed.pairs.copy(), pair_conductances(conductances, placed), ids, Dropped())


def check_directed(directed: str | None) -> Direction:
    """Take the caller's word on direction."""
    if directed is None:
        return "either"
    if directed != "mutual":
        raise ValueError(f'directed must be None or "mutual", not {directed!r}')
    return "mutual"


def pair_conductances(conductances: Any, placed: PlacedPairs) -> Float[np.ndarray, " pairs"] | None:
    """Take the conductances of given pairs, if there are any."""
    if conductances is None:
        return None
    return check_conductances(conductances, len(placed.pairs), lambda k: name_edge(placed.pairs[k], placed.ids))


def check_conductances(values: Any, n_edges: int, name_edge: Callable[[int], str]) -> Float[np.ndarray, " edges"]:
    """Take conductances as a new float64 array: one an edge, numbers, finite and positive.

    Parameters
    ----------
    values
        An array, series, tensor or other iterable.
    n_edges
        How many there must be.
    name_edge
        Writes the k-th edge by its ids; `name_edge` does.

    Raises
    ------
    EdgeError
        A ValueError, at the first edge whose conductance is not finite and positive.
    TypeError
        At the first edge whose conductance is not a real number.
    """
    array = as_array(values)
    array = _array_of(list(values)) if array is None else array
    if array.shape != (n_edges,):
        raise ValueError(f"conductances must have shape {(n_edges,)}, one for each edge, not {array.shape}")
    if array.dtype.kind in "iufb":
        checked = array.astype(np.float64)
    else:
        numbers = [as_number(value) for value in array.tolist()]
        if None in numbers:
            position = numbers.index(None)
            value = array.tolist()[position]
            raise TypeError(
                f"edge {position}: {name_edge(position)} has conductance {value!r};"
                f" conductances must be real numbers, not {type(value).__name__}"
            )
        checked = np.array(numbers, dtype=np.float64)
    wrong = ~(np.isfinite(checked) & (checked > 0))
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        value = float(checked[position])
        raise EdgeError(position, f"{name_edge(position)} has conductance {value}; it must be finite and positive")
    return checked


def as_number(value: Any) -> float | None:
    """Give a real number as a float, and None for anything else; a string is no number, whatever it says."""
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return None


def name_edge(pair: Int[np.ndarray, "2"], ids: VertexIds) -> str:
    """Write an edge by its ids, for errors."""
    first, second = ids.values[pair].tolist()
    return f"({first!r}, {second!r})"


def _distinct(values: Int[np.ndarray, " values"]) -> Int[np.ndarray, " distinct"]:
    ordered = np.sort(values)
    starts = _starts(ordered)
    return ordered if len(starts) == len(ordered) else ordered[starts]


def _starts(ordered: Int[np.ndarray, " values"]) -> Int[np.ndarray, " runs"]:
    """Where each run of equal values begins in a sorted array."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def _array_of(values: list[Any]) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        array = None
    if array is not None and (array.dtype.kind in "iufb" or array.ndim != 1):
        return array
    # one string would make strings of the numbers beside it
    objects = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        objects[k] = value
    return objects


def _refuse_overflow(sums: Float[np.ndarray, " arcs"], origin: Int[np.ndarray, " arcs"], placed: PlacedPairs) -> None:
    if not np.isfinite(sums).all():
        position = int(origin[np.flatnonzero(~np.isfinite(sums))[0]])
        edge = name_edge(placed.pairs[position], placed.ids)
        raise EdgeError(position, f"{edge} is given several times with conductances that add up to more than a float")


def _check_agreement(
    values: Float[np.ndarray, " arcs"],
    starts: Int[np.ndarray, " edges"],
    both: Bool[np.ndarray, " edges"],
    edges: Int[np.ndarray, "edges 2"],
    origin: Int[np.ndarray, " arcs"],
    ids: VertexIds,
) -> None:
    there = starts[both]
    back = there + 1
    wrong = np.abs(values[there] - values[back]) > AGREEMENT * np.maximum(values[there], values[back])
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        edge = name_edge(edges[both][k], ids)
        raise EdgeError(
            int(max(origin[there[k]], origin[back[k]])),
            f"{edge} has conductance {values[there[k]]} in one direction and {values[back[k]]} in the other;"
            " the two must agree",
        )


def _refuse_asymmetry(
    edges: Int[np.ndarray, "edges 2"],
    arcs: Int[np.ndarray, " edges"],
    both: Bool[np.ndarray, " edges"],
) -> None:
    k = int(np.flatnonzero(~both)[0])
    given = edges[k] if not arcs[k] & 1 else edges[k][::-1]
    i, j = given.tolist()
    raise ValueError(
        f"the adjacency is not symmetric: it has an entry at ({i}, {j}) and none at ({j}, {i}). Add its transpose, or"
        ' pass directed="mutual" to keep only edges that are there in both directions'
    )


def _without_isolated(canonical: CanonicalEdges) -> CanonicalEdges:
    touched = np.zeros(canonical.ids.count, dtype=bool)
    touched[canonical.edges.ravel()] = True
    kept = np.flatnonzero(touched)
    lost = canonical.ids.count - len(kept)
    if not lost:
        return canonical
    number = np.cumsum(touched) - 1
    was = canonical.dropped
    dropped = Dropped(was.repeats, was.self_loops, was.one_way, lost)
    return CanonicalEdges(number[canonical.edges], canonical.conductances, canonical.ids.take(kept), dropped)


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}" if number else ""
