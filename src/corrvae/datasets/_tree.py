"""The synthetic data of the clustering task: points whose latent positions follow a random tree."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs.graph import CorrelationGraph


@final
@dataclass(frozen=True, eq=False)
class TreeData:
    """Points on a tree.

    Attributes
    ----------
    features
        Binary, one row for each point.
    graph
        The tree.
    latents
        The true positions z.
    labels
        1 for points above the median of the first principal component of z, else 0.

    Examples
    --------
    >>> data = tree(50, 8, random_state=0)
    >>> data.latents.shape, sorted(set(data.labels.tolist()))
    ((50, 100), [0, 1])
    """

    features: Float[np.ndarray, "points features"]
    graph: CorrelationGraph
    latents: Float[np.ndarray, "points dim"]
    labels: Int[np.ndarray, " points"]


def tree(
    n_points: int = 10_000,
    n_features: int = 1000,
    *,
    n_components: int = 100,
    n_hidden: int = 300,
    tau: float = 0.99,
    random_state: int | np.random.Generator | None = None,
) -> TreeData:
    """Draw points whose latent positions follow a random tree.

    The parent of point i is uniform among the points before it. The first position is standard normal, each other is
    tau times its parent's plus sqrt(1 - tau^2) times standard normal noise, so that every one is standard normal and
    neighbours correlate by tau. Features are Bernoulli, their logits a network of one hidden layer of rectified units,
    with standard normal weights and no biases.

    Parameters
    ----------
    n_points, n_features
        Rows and columns.
    n_components
        Latent dimension d.
    n_hidden
        Hidden units.
    tau
        Correlation of neighbours, between -1 and 1.
    random_state
        Seed or generator.

    Examples
    --------
    >>> data = tree(50, 8, random_state=0)
    >>> data.features.shape, data.graph, int(data.labels.sum())
    ((50, 8), CorrelationGraph(50 vertices, 49 edges), 25)
    """
    for name, number in (("n_points", n_points), ("n_features", n_features), ("n_components", n_components)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, but is {number}")
    if not -1 < tau < 1:
        raise ValueError(f"tau must be between -1 and 1, but is {tau}")
    generator = np.random.default_rng(random_state)
    parents = generator.integers(0, np.arange(1, n_points))
    latents = generator.standard_normal((n_points, n_components))
    latents[1:] *= np.sqrt(1 - tau**2)
    for point, parent in enumerate(parents, start=1):  # in order, because a parent comes before its children
        latents[point] += tau * latents[parent]
    hidden = np.maximum(latents @ generator.standard_normal((n_components, n_hidden)), 0.0)
    logits = hidden @ generator.standard_normal((n_hidden, n_features))
    # a logistic variable is below the logit with the probability that the logit stands for
    features = (generator.logistic(size=logits.shape) < logits).astype(np.float32)
    edges = np.column_stack([parents, np.arange(1, n_points)])
    graph = CorrelationGraph.from_edges(edges, n_vertices=n_points)
    return TreeData(features, graph, latents, _labels(latents))


def _labels(latents: Float[np.ndarray, "points dim"]) -> Int[np.ndarray, " points"]:
    centred = latents - latents.mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    position = centred @ direction
    return (position > np.median(position)).astype(np.int64)
