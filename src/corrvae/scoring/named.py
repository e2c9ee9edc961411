"""Points under their ids, and which candidates a query leaves out for what they are."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Int, Shaped

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds
from corrvae.scoring.points import Exclusions, Points


@final
@dataclass(frozen=True, eq=False)
class NamedPoints:
    """Points, and what they are called.

    Attributes
    ----------
    points
        The points.
    ids
        Their ids, or numbers of rows.
    known
        Whether these are ids, by which a point can be recognised elsewhere.
    """

    points: Points
    ids: Shaped[np.ndarray, " points"]
    known: bool

    def take(self, indices: Int[np.ndarray, " chosen"]) -> "NamedPoints":
        """Give some of the points, in this order."""
        return NamedPoints(self.points.take(indices), self.ids[indices], self.known)

    def is_same(self, other: "NamedPoints") -> bool:
        """Whether these are the same points under the same ids or numbers."""
        if self is other:
            return True
        if self.known != other.known or self.ids.tolist() != other.ids.tolist():
            return False
        mine, theirs = self.points, other.points
        return np.array_equal(mine.mean, theirs.mean) and np.array_equal(mine.stddev, theirs.stddev)


def refuse_repeats(named: NamedPoints, what: str) -> None:
    """Refuse points of which one is named twice.

    Examples
    --------
    >>> refuse_repeats(NamedPoints(Points.of(np.zeros((2, 1)), np.ones((2, 1))), np.array([7, 8]), True), "candidates")
    """
    seen: dict[Any, int] = {}
    for position, value in enumerate(named.ids.tolist() if named.known else ()):
        if seen.setdefault(value, position) != position:
            raise ValueError(f"{what} holds id {value!r} twice, at positions {seen[value]} and {position}")


def exclude_same(queries: Shaped[np.ndarray, " queries"], candidates: Shaped[np.ndarray, " candidates"]) -> Exclusions:
    """Exclude from each query the candidate of its id.

    Examples
    --------
    >>> exclude_same(np.array(["a", "b"], dtype=object), np.array(["b", "c"], dtype=object)).queries
    array([1])
    """
    where = VertexIds.from_vertices(candidates).find(queries)
    return Exclusions.of(len(queries), np.flatnonzero(where >= 0), where[where >= 0])


def exclude_neighbors(
    queries: Shaped[np.ndarray, " queries"],
    candidates: Shaped[np.ndarray, " candidates"],
    graph: CorrelationGraph,
    vertices: Shaped[np.ndarray, " vertices"],
) -> Exclusions:
    """Exclude from each query the candidates that a graph joins it with; points that are no vertices have none.

    Parameters
    ----------
    queries, candidates
        Their ids.
    graph
        The graph.
    vertices
        The ids of its vertices, as queries and candidates are called.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(10, 20), (20, 30)])
    >>> exclude_neighbors(np.array([20, 5]), np.array([30, 20]), graph, graph.ids).candidates
    array([0])
    """
    vertex_of = VertexIds(vertices.copy(), len(vertices)).find(queries)
    position_of = VertexIds.from_vertices(candidates).find(vertices)
    asking = np.flatnonzero(vertex_of >= 0)
    joined = graph.to_scipy()[vertex_of[asking]].tocoo()
    rows, columns = joined.coords
    position = position_of[columns]
    there = position >= 0
    return Exclusions.of(len(queries), asking[rows[there]], position[there])
