"""The correlation graph, how it is read and split, and the spanning weights of its edges.

`CorrelationGraph` is the one graph type of the project; `spanning_weights` gives the share of maximal acyclic subgraphs
that contain each edge, which is what turns a graph with cycles into a valid prior.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.graphs.canonical import DroppedEdgesWarning as DroppedEdgesWarning
    from corrvae.graphs.features import graph_features as graph_features
    from corrvae.graphs.forests import enumerate_forests as enumerate_forests
    from corrvae.graphs.forests import sample_forest as sample_forest
    from corrvae.graphs.graph import CorrelationGraph as CorrelationGraph
    from corrvae.graphs.splits import EdgeSplit as EdgeSplit
    from corrvae.graphs.splits import split_edges as split_edges
    from corrvae.graphs.weights import SpanningPlan as SpanningPlan
    from corrvae.graphs.weights import SpanningWeights as SpanningWeights
    from corrvae.graphs.weights import spanning_weights as spanning_weights

_HOMES = {
    "CorrelationGraph": ".graph",
    "DroppedEdgesWarning": ".canonical",
    "EdgeSplit": ".splits",
    "SpanningPlan": ".weights",
    "SpanningWeights": ".weights",
    "enumerate_forests": ".forests",
    "graph_features": ".features",
    "sample_forest": ".forests",
    "spanning_weights": ".weights",
    "split_edges": ".splits",
}

__all__ = [
    "CorrelationGraph",
    "DroppedEdgesWarning",
    "EdgeSplit",
    "SpanningPlan",
    "SpanningWeights",
    "enumerate_forests",
    "graph_features",
    "sample_forest",
    "spanning_weights",
    "split_edges",
]

__getattr__, __dir__ = _attach(__name__, _HOMES)
