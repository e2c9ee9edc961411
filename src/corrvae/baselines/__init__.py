"""What the experiments compare with: embeddings by other methods, each a function of features and graph.

`principal_components` reads features alone. `graph_sage` and `variational_graph` are networks over the graph, made with
torch_geometric, which comes with ``corrvae[baselines]``.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.baselines.networks import graph_sage as graph_sage
    from corrvae.baselines.networks import variational_graph as variational_graph
    from corrvae.baselines.projections import principal_components as principal_components

_HOMES = {
    "graph_sage": ".networks",
    "principal_components": ".projections",
    "variational_graph": ".networks",
}
__all__ = ["graph_sage", "principal_components", "variational_graph"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
