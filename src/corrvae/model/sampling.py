"""New data: latent points from the prior, features from the likelihood."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs.forests import forest_levels


@final
@dataclass(frozen=True, eq=False)
class PriorSample:
    """New data drawn from a model: features of each point, and the latent points that they were drawn from."""

    features: Float[np.ndarray, "rows features"]
    latent: Float[np.ndarray, "rows dim"]


def sample_latent(
    tau: Float[np.ndarray, " dim"],
    n_points: int,
    forest: Int[np.ndarray, "edges 2"],
    generator: np.random.Generator,
) -> Float[np.ndarray, "points dim"]:
    """Draw latent points from the prior along a forest: z_child = tau z_parent + sqrt(1 - tau^2) noise."""
    z = generator.standard_normal((n_points, len(tau)))
    for children, parents, _ in forest_levels(n_points, forest):
        z[children] = tau * z[parents] + np.sqrt(1.0 - tau**2) * z[children]
    return z
