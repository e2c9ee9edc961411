"""Features with the rows of the adjacency matrix beside them."""

from typing import Any

import numpy as np
from scipy import sparse

from corrvae.graphs.graph import CorrelationGraph


def graph_features(X: Any, graph: CorrelationGraph) -> sparse.csr_array:
    """Return features with each vertex's row of the adjacency matrix, 0 or 1, beside them: [X, A], CSR in float32.

    An encoder that reads features alone cannot know a vertex's neighbours. With these features it does, and a
    multinomial likelihood explains both parts: what a point has, and whom it is linked to. This suits links among the
    vertices of training; a new row has no adjacency. Use the training graph, or held-out edges leak. Vertex i is row i.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (1, 2)])
    >>> graph_features([[5.0], [0.0], [6.0]], graph).toarray().tolist()
    [[5.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [6.0, 0.0, 1.0, 0.0]]
    """
    index = getattr(X, "index", None)
    if index is not None and not callable(index):  # a list has a method of that name
        ids, known = list(index), graph.ids.tolist()
        if ids != known and set(ids) == set(known):
            raise ValueError(
                "the rows of X are in another order than the vertices of the graph; pass graph.subgraph(X.index)"
            )
    if np.ndim(X) != 2 and not sparse.issparse(X):
        raise ValueError(f"X must have two dimensions, not {np.ndim(X)}")
    features = sparse.csr_array(X, dtype=np.float32)
    n_rows = len(features.indptr) - 1
    if n_rows != graph.n_vertices:
        raise ValueError(f"the graph has {graph.n_vertices:,} vertices, but X has {n_rows:,} rows")
    adjacency = sparse.csr_array(graph.to_scipy(), dtype=np.float32)
    adjacency.data[:] = 1.0
    return sparse.csr_array(sparse.hstack([features, adjacency], format="csr"))
