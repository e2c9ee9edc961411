"""Graphs of other libraries, in and out. None of them is imported before one of its graphs is handed over."""

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped
from scipy.sparse import coo_array, csr_array, issparse

from corrvae.graphs.canonical import CanonicalEdges, Direction, as_number, canonicalize, pair_conductances
from corrvae.graphs.ids import VertexIds, named
from corrvae.graphs.pairs import EdgeError, PlacedPairs, checked_count, index_pairs, place_edges

if TYPE_CHECKING:
    import networkx

    from corrvae.graphs.graph import CorrelationGraph


def read_scipy(
    adjacency: Any, vertices: Iterable[Any] | None, weighted: bool | None, direction: Direction
) -> CanonicalEdges:
    """Read a sparse adjacency; see `CorrelationGraph.from_scipy`."""
    if not issparse(adjacency):
        raise TypeError(
            f"from_scipy reads a SciPy sparse adjacency, not {type(adjacency).__name__};"
            " scipy.sparse.csr_array makes one from a dense matrix"
        )
    if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"an adjacency is square; this one has shape {adjacency.shape}")
    entries = adjacency.tocsr(copy=True)
    entries.sum_duplicates()
    # a stored zero is no edge; NaN compares unequal to zero and stays, to be refused with its place
    entries.eliminate_zeros()
    entries = entries.tocoo()
    pairs = np.column_stack([entries.row, entries.col]).astype(np.int64)
    placed = PlacedPairs(pairs, named(vertices, adjacency.shape[0]))
    try:
        # values on the diagonal are dropped and say nothing about conductances
        off = pairs[:, 0] != pairs[:, 1]
        values = _conductances(entries.data[off], weighted)
        if values is not None:
            full = np.ones(len(pairs))
            full[off] = pair_conductances(values, PlacedPairs(pairs[off], placed.ids))
            values = full
        return canonicalize(placed, values, "symmetric" if direction == "either" else direction)
    except EdgeError as error:
        # positions among stored entries mean nothing to the caller; the sentence names the edge
        raise ValueError(f"adjacency: {error.problem}") from error


def read_networkx(
    graph: "networkx.Graph", conductance: str | None, vertices: Iterable[Any] | None, direction: Direction
) -> CanonicalEdges:
    """Read a networkx graph; see `CorrelationGraph.from_networkx`."""
    if not (hasattr(graph, "edges") and hasattr(graph, "nodes") and hasattr(graph, "is_directed")):
        raise TypeError(f"from_networkx reads a networkx graph, not {type(graph).__name__}")
    nodes = VertexIds.from_vertices(list(graph.nodes))
    ids = nodes if vertices is None else VertexIds.from_vertices(vertices)
    unknown = np.flatnonzero(ids.find(nodes.values) < 0)
    if len(unknown):
        value = nodes.values[unknown[:1]].tolist()[0]
        raise ValueError(f"node {unknown[0]} of the graph: {ids.describe_unknown(value)}")
    placed = place_edges(list(graph.edges()), ids)
    values = None
    if conductance is not None:
        values = []
        for first, second, attributes in graph.edges(data=True):
            if conductance not in attributes:
                there = ", ".join(map(repr, sorted(map(str, attributes)))) or "none"
                raise ValueError(f"edge ({first!r}, {second!r}) has no attribute {conductance!r}; it has {there}")
            values.append(as_number(attributes[conductance]))
            if values[-1] is None:
                found = attributes[conductance]
                raise TypeError(f"edge ({first!r}, {second!r}) has {conductance!r} {found!r}, which is not a number")
    # an undirected edge counts in both directions already
    direction = direction if graph.is_directed() else "either"
    try:
        return canonicalize(placed, pair_conductances(values, placed), direction)
    except EdgeError as error:
        raise ValueError(f"edge {error.problem}") from error


def read_pyg(
    data: Any,
    n_vertices: int | None,
    vertices: Iterable[Any] | None,
    weighted: bool | None,
    direction: Direction,
) -> CanonicalEdges:
    """Read a PyG ``Data`` or ``edge_index``; see `CorrelationGraph.from_pyg`."""
    bare = getattr(data, "edge_index", None) is None
    edge_index = _to_numpy(data if bare else data.edge_index)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(
            f"an edge_index has shape (2, m), not {edge_index.shape}; from_edges takes pairs of shape (m, 2)"
        )
    count = checked_count(_vertex_count(edge_index, None if bare else data, n_vertices, vertices))
    placed = PlacedPairs(index_pairs(np.ascontiguousarray(edge_index.T), count).pairs, named(vertices, count))
    weight = None if bare else getattr(data, "edge_weight", None)
    if weighted and weight is None:
        raise ValueError("weighted=True, but the data has no edge_weight")
    values = None if weight is None else _conductances(_to_numpy(weight), weighted)
    return canonicalize(placed, pair_conductances(values, placed), direction)


def write_scipy(graph: "CorrelationGraph") -> csr_array:
    """Write a symmetric adjacency with sorted rows; see `CorrelationGraph.to_scipy`."""
    low, high = graph.edges.astype(np.int32).T
    half = np.ones(graph.n_edges) if graph.conductances is None else graph.conductances
    # lower neighbours first: every row then comes out sorted
    entries = (np.concatenate([high, low]), np.concatenate([low, high]))
    return coo_array((np.concatenate([half, half]), entries), shape=(graph.n_vertices, graph.n_vertices)).tocsr()


def write_networkx(graph: "CorrelationGraph") -> "networkx.Graph":
    """Write a networkx graph; see `CorrelationGraph.to_networkx`."""
    import networkx

    written = networkx.Graph()
    written.add_nodes_from(graph.ids.tolist())
    first, second = graph.id_pairs.T.tolist()
    if graph.conductances is None:
        written.add_edges_from(zip(first, second, strict=True))
    else:
        written.add_weighted_edges_from(zip(first, second, graph.conductances.tolist(), strict=True))
    return written


def _vertex_count(
    edge_index: Shaped[np.ndarray, "2 pairs"], data: Any, n_vertices: int | None, vertices: Iterable[Any] | None
) -> int:
    if n_vertices is not None:
        return n_vertices
    if isinstance(vertices, Sized):
        return len(vertices)
    said = getattr(data, "num_nodes", None)
    if said is not None:
        return said
    return int(edge_index.max(initial=-1)) + 1


def _conductances(values: np.ndarray, weighted: bool | None) -> np.ndarray | None:
    """Decide whether values are conductances: unless told, ones say only that there is an edge."""
    if weighted is None:
        weighted = bool((values != 1).any())
    return values if weighted else None


def _to_numpy(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)
