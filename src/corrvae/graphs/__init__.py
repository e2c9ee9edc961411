"""The correlation graph, how it is read and split, and the spanning weights of its edges.

`CorrelationGraph` is the one graph type of the project; `spanning_weights` gives the share of maximal acyclic subgraphs
that contain each edge, which is what turns a graph with cycles into a valid prior.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.graphs.graph import CorrelationGraph as CorrelationGraph
    from corrvae.graphs.splits import EdgeSplit as EdgeSplit
    from corrvae.graphs.splits import split_edges as split_edges

_HOMES = {
    "CorrelationGraph": ".graph",
    "EdgeSplit": ".splits",
    "split_edges": ".splits",
}
__all__ = list(_HOMES)  # noqa: PLE0604

__getattr__, __dir__ = _attach(__name__, _HOMES)
