"""A graph with its edges drawn by spanning weight.

The more an edge is needed to hold the graph together, the darker and broader it is.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from corrvae.graphs.graph import CorrelationGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PALE, _DARK = 0.25, 1.0  # of the colour map: its palest end would not show on white


def draw_weights(
    graph: CorrelationGraph,
    weights: Float[np.ndarray, " edges"],
    positions: Float[np.ndarray, "vertices 2"],
    axes: "Axes",
    *,
    label_edges: bool = False,
) -> None:
    """Draw a graph on matplotlib axes, its edges by spanning weight.

    Parameters
    ----------
    graph, weights
        The graph and the weights of its edges.
    positions
        Where each vertex goes.
    axes
        Where to draw.
    label_edges
        Write each weight beside its edge: for small graphs.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from corrvae import CorrelationGraph, spanning_weights
    >>> triangle = CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2)])
    >>> axes = Figure().add_subplot()
    >>> draw_weights(triangle, spanning_weights(triangle).weights, np.eye(3)[:, :2], axes)
    >>> len(axes.collections)  # edges and vertices
    2
    """
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    ends = positions[graph.edges]
    colours = colormaps["viridis_r"](_PALE + (_DARK - _PALE) * weights)
    axes.add_collection(LineCollection(list(ends), colors=colours, linewidths=0.6 + 2.4 * weights, zorder=1))
    axes.scatter(*positions.T, s=60 if label_edges else 12, color="white", edgecolors="0.2", linewidths=1.0, zorder=2)
    if label_edges:
        # a third of the way along, so that labels of crossing edges stay apart
        for (start, end), weight in zip(ends, weights, strict=True):
            x, y = start + (end - start) / 3
            box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"}
            axes.text(x, y, f"{weight:.2f}", ha="center", va="center", fontsize=8, bbox=box, zorder=3)
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.axis("off")
