"""The synthetic data of the clustering task: points whose latent positions follow a random tree."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs import CorrelationGraph


@final
@dataclass(frozen=True, eq=False)
class TreeData:
    """Points on a tree.

    Attributes
    ----------
    features : ndarray
        Binary, one row for each point.
    graph : CorrelationGraph
        The tree.
    latents : ndarray
        The true positions z.
    labels : ndarray
        1 for points above the median of the first principal component of z, otherwise 0.
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

    The parent of point i is uniform among the points before it. With standard normal noise e,

        z_0 = e_0,    z_i = tau z_parent(i) + sqrt(1 - tau^2) e_i,

    so that every position is standard normal and neighbours correlate by tau. Features are Bernoulli; their logits are
    a network with one hidden layer of rectified units, standard normal weights and no biases.

    Parameters
    ----------
    n_points, n_features : int
        Rows and columns.
    n_components : int
        Latent dimension.
    n_hidden : int
        Hidden units.
    tau : float
        Correlation of neighbours, between -1 and 1.
    random_state : int, Generator or None
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
    for point, parent in enumerate(parents, start=1):  # a parent comes before its children
        latents[point] += tau * latents[parent]
    hidden = np.maximum(latents @ generator.standard_normal((n_components, n_hidden)), 0.0)
    logits = hidden @ generator.standard_normal((n_hidden, n_features))
    # A logistic variable is below the logit with the probability that the logit stands for.
    features = (generator.logistic(size=logits.shape) < logits).astype(np.float32)
    edges = np.column_stack([parents, np.arange(1, n_points)])
    centred = latents - latents.mean(axis=0)
    position = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
    labels = (position > np.median(position)).astype(np.int64)
    return TreeData(features, CorrelationGraph.from_edges(edges, n_vertices=n_points), latents, labels)
