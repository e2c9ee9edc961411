"""Weights of small graphs without conductances, by one dense inverse: nothing to compile, nothing to plan."""

import numpy as np
from jaxtyping import Float

from corrvae.graphs.graph import CorrelationGraph

# Up to here the inverse takes a tenth of a second, while compiling the elimination takes tens of seconds once.
LARGEST = 1500


def small_weights(graph: CorrelationGraph) -> Float[np.ndarray, " edges"]:
    """Effective resistance across each edge, from the inverse of the Laplacian without one vertex of each component.

    An edge on a cycle of k edges has a weight of at most (k - 1) / k, since further edges only lower the resistance.
    With n vertices, a weight above 1 - 1/n is therefore that of a bridge, exactly 1.

    Examples
    --------
    >>> small_weights(CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)])).round(3)
    array([0.667, 0.667, 0.667, 1.   ])
    """
    n, (tails, heads) = graph.n_vertices, graph.edges.T
    laplacian = np.diag(graph.degrees.astype(np.float64))
    laplacian[tails, heads] = laplacian[heads, tails] = -1.0
    # The vertex of the highest degree of each component is the ground.
    order = np.lexsort((-graph.degrees, graph.components))
    _, first = np.unique(graph.components[order], return_index=True)
    kept = np.setdiff1d(np.arange(n), order[first])
    potential = np.zeros((n, n))
    potential[np.ix_(kept, kept)] = np.linalg.inv(laplacian[np.ix_(kept, kept)])
    own = potential.diagonal()
    weights = own[tails] + own[heads] - (potential[tails, heads] + potential[heads, tails])
    weights[weights > 1.0 - 0.5 / n] = 1.0
    weights.flags.writeable = False
    return weights
