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
    then vertices and rows are matched by id. Where the graph's ids are 0, 1, ..., they only count, so that vertex i is
    row i, unless the rows' ids are these numbers in another order.

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
        cure = "Name all vertices, also those without an edge, with vertices= or n_vertices= when making the graph"
        if graph.n_vertices > n_rows:
            cure = "graph.subgraph(ids), or graph[places], leaves out those without a row"
        raise ValueError(
            f"the graph has {graph.n_vertices:,} vertices, but X has {n_rows:,} rows; every row is a vertex. {cure}"
        )
    if row_ids is None:
        return AlignedRows(graph.ids, graph)
    if not graph_has_ids(graph) and not _counts(np.sort(row_ids) if row_ids.dtype.kind == "i" else row_ids):
        return AlignedRows(row_ids, _renamed(graph, row_ids))
    if graph.ids.dtype.kind == row_ids.dtype.kind:
        return AlignedRows(row_ids, _reordered(graph, row_ids))
    if _counts(row_ids):
        return AlignedRows(graph.ids, graph)
    raise ValueError(
        f"the rows of X have ids such as {row_ids[0]!r}, the graph's vertices such as {graph.ids[0]!r}: they cannot be "
        "matched by id. If vertex i is row i, pass X as an array; else give both the same ids"
    )


def graph_has_ids(graph: CorrelationGraph) -> bool:
    """Say whether a graph's ids are more than the numbers 0, 1, ....

    Examples
    --------
    >>> graph_has_ids(CorrelationGraph.from_edges([(0, 1)]))
    False
    """
    return not _counts(graph.ids)


def _counts(ids: np.ndarray) -> bool:
    return ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))


def _renamed(graph: CorrelationGraph, ids: np.ndarray) -> CorrelationGraph:
    return CorrelationGraph(graph.edges, graph.n_vertices, conductances=graph.conductances, vertices=ids)


def _reordered(graph: CorrelationGraph, row_ids: np.ndarray) -> CorrelationGraph:
    if graph.ids.tolist() == row_ids.tolist():
        return graph
    try:
        return graph.subgraph(row_ids)
    except ValueError as error:
        raise ValueError(
            f"the rows of X do not match the graph's vertices: {error}. Give the frame the graph's ids as its index, "
            "or pass an array whose row i is vertex i; for cross-validation, which takes rows and vertices by place, "
            "bring the graph into the frame's order with graph.subgraph(frame.index)"
        ) from error
