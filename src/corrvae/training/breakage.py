"""Where the objective became infinite or not a number."""

import numpy as np
import torch

from corrvae.model import Batch
from corrvae.objectives import Terms


def broken_term(terms: Terms, batch: Batch, vertices: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """Find the first term that broke, and the vertices it broke at.

    Parameters
    ----------
    terms
        Of the batch.
    batch
        Its edges and pairs are positions in `vertices`.
    vertices
        All vertices of the batch, those that were drawn first.

    Returns
    -------
    tuple
        The term in words, and the vertices; all of them if every single value is finite.
    """
    for name, mean in terms.means.items():
        wrong = torch.nonzero(~torch.isfinite(mean.values.detach()))[:, 0].cpu()
        if len(wrong):
            places = {"edge": batch.edges, "non_edge": batch.pairs}.get(name)
            if name == "non_edge" and places is None:
                places = torch.triu_indices(batch.n_drawn, batch.n_drawn, 1).T
            positions = wrong if places is None else places.cpu()[wrong].reshape(-1).unique()
            return f"the {name} term", tuple(vertices[positions.numpy()].tolist())
    return "the objective", tuple(vertices.tolist())
