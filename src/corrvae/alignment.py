"""Which vertex of the graph is which row of the table, and under which ids the rows go."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Shaped

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds


@final
@dataclass(frozen=True, eq=False)
class AlignedRows:
    """Rows under their ids, and the graph with its vertices in the order of the rows.

    Attributes
    ----------
    ids
        One for each row: the graph's, those of the table, or 0, 1, ....
    graph
        The graph; ``None`` if there is none.
    """

    ids: Shaped[np.ndarray, " rows"]
    graph: CorrelationGraph | None = None


def align(n_rows: int, row_ids: Shaped[np.ndarray, " rows"] | None, graph: Any) -> AlignedRows:
    """Bring the vertices of a graph into the order of a table's rows.

    Vertex i is row i, unless the table has ids of its own of the same kind (integers, or anything else) as the graph's:
    then vertices and rows are matched by id. The ids 0, 1, ... only count and match anything.

    Parameters
    ----------
    n_rows
        Rows of the table.
    row_ids
        Their ids, if the table has some.
    graph
        A `CorrelationGraph`, or ``None``.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "cem")])
    >>> align(3, np.array(["cem", "bob", "ann"], dtype=object), graph).graph.edges.tolist()
    [[0, 1], [1, 2]]
    """
    if row_ids is not None:
        row_ids = VertexIds.from_vertices(row_ids).values
    if graph is None:
        return AlignedRows(np.arange(n_rows) if row_ids is None else row_ids)
    if not isinstance(graph, CorrelationGraph):
        raise TypeError(
            f"graph must be a corrvae.CorrelationGraph, got {type(graph).__name__}; make one with "
            "CorrelationGraph.from_edges, from_scipy, from_networkx, from_pyg or from_file"
        )
    if graph.n_vertices != n_rows:
        raise ValueError(
            f"the graph has {graph.n_vertices:,} vertices, but X has {n_rows:,} rows; every row is a vertex. Name all "
            "vertices, also those without an edge, with vertices= or n_vertices= when making the graph"
        )
    if row_ids is None:
        return AlignedRows(graph.ids, graph)
    if not graph_has_ids(graph):
        return AlignedRows(row_ids, graph)
    if graph.ids.dtype.kind != row_ids.dtype.kind:
        return AlignedRows(graph.ids if row_ids.dtype.kind == "i" else row_ids, graph)
    return AlignedRows(row_ids, _reordered(graph, row_ids))


def graph_has_ids(graph: CorrelationGraph) -> bool:
    """Say whether a graph's ids are more than the numbers 0, 1, ....

    Examples
    --------
    >>> graph_has_ids(CorrelationGraph.from_edges([(0, 1)]))
    False
    """
    return graph.ids.dtype.kind != "i" or not np.array_equal(graph.ids, np.arange(graph.n_vertices))


def _reordered(graph: CorrelationGraph, row_ids: np.ndarray) -> CorrelationGraph:
    if graph.ids.tolist() == row_ids.tolist():
        return graph
    try:
        return graph.subgraph(row_ids)
    except ValueError as error:
        raise ValueError(
            f"the rows of X do not match the graph's vertices: {error}. Give the frame the graph's ids as its index, "
            "or pass an array whose row i is vertex i"
        ) from error
