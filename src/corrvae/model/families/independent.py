"""Independent posteriors: CVAE_ind with a graph, a plain VAE without."""

from typing import final

import torch

from corrvae.model.batch import Batch
from corrvae.model.families.base import Family
from corrvae.model.network import CorrelatedModel
from corrvae.model.objectives import Terms, edge_term


@final
class Independent(Family):
    """q(z) = prod_i q(z_i given x_i): the posteriors of two points are independent.

    The objective is E log p - KL - sum_e w_e T_e with T at rho = 0 (CVAE_ind), and E log p - KL without a graph (VAE).

    Examples
    --------
    >>> Independent()
    Independent()
    """

    def terms(self, model: CorrelatedModel, batch: Batch, generator: torch.Generator | None = None) -> Terms:
        """Return reconstruction, singleton and edge terms."""
        return mean_field_terms(model, batch, generator)


def mean_field_terms(model: CorrelatedModel, batch: Batch, generator: torch.Generator | None = None) -> Terms:
    """Return the terms of a posterior in which all points are independent."""
    _, marginals, terms, kl = model.autoencode(batch, generator)
    terms.add("singleton", -1.0, kl, batch.vertex_weights)
    if batch.edges is not None and batch.edge_weights is not None:
        prior = model.prior(marginals.mean)
        terms.add("edge", -1.0, edge_term(marginals, batch.edges, prior), batch.edge_weights)
    return terms
