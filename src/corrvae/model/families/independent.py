"""Independent posteriors: CVAE_ind with a graph, a plain VAE without."""

from typing import ClassVar, final

import torch

from corrvae.model.batch import Batch
from corrvae.model.families.base import Family
from corrvae.model.network import CorrelatedModel
from corrvae.model.objectives import Terms, edge_term


@final
class Independent(Family):
    """q(z) = prod_i q(z_i given x_i): the posteriors of two points are independent.

    The objective is E log p - KL - sum_e w_e T_e with T at rho = 0 (CVAE_ind), and E log p - KL without a graph (VAE).

    Parameters
    ----------
    contrast : float
        Weight of a further term, contrast * mean_e log softmax_j(log-odds / T) over the edges of a step, T learned: the
        other end of an edge competes with those of the other edges, a bound on log p(G given X) beside the bound on
        log p(X given G). Thousands, if pairs must be told from all others, as in matching.
    rivals : {"all", "disjoint", "nearest"}
        Which of them compete: all but neighbours; of these only those without a feature in common, for rows of items
        where linked rows never share one (parts of one list); or only the 16 hardest of either end, by log-odds.

    Examples
    --------
    >>> Independent(contrast=100.0)
    Independent(contrast=100.0)
    """

    can_propagate: ClassVar[bool] = True

    def __init__(self, *, contrast: float = 0.0, rivals: str = "all") -> None:
        super().__init__()
        self.contrast = contrast
        self.rivals = rivals

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
    return model.family.add_contrast(terms, model, marginals, batch)
