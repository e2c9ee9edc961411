"""The evidence lower bound of a trained model over a whole table, without the terms that gamma adds."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int

from corrvae import objectives
from corrvae.inference import infer_posterior
from corrvae.model import CorrelatedModel
from corrvae.nn.encoder import Marginals
from corrvae.nn.features import FeatureTable
from corrvae.posterior import Posterior

# Rows decoded, and edges evaluated, at a time.
_ROWS, _EDGES = 1024, 8192


@final
@dataclass(frozen=True)
class Bound:
    """The bound and its terms, each divided by the number of rows, in nats.

    Attributes
    ----------
    reconstruction
        E log p(x given z), an average over a few fixed draws of z.
    singleton
        KL of the singleton posteriors from their prior.
    edge
        What the pair prior adds to it: the weighted sum of T over the edges.
    """

    reconstruction: float
    singleton: float
    edge: float = 0.0

    @property
    def total(self) -> float:
        """The bound."""
        return self.reconstruction - self.singleton - self.edge


def evidence_bound(
    model: CorrelatedModel,
    table: FeatureTable,
    edges: Int[np.ndarray, "edges 2"] | None = None,
    weights: Float[np.ndarray, " edges"] | None = None,
    *,
    sample_weights: Float[np.ndarray, " rows"] | None = None,
    n_draws: int = 4,
    seed: int = 0,
) -> Bound:
    """Evaluate E log p - KL - sum_e w_e T_e per row.

    The latent noise follows from the seed, the number of rows, the number of draws and the latent dimension: two models
    of the same dimension are compared under the same noise.

    Parameters
    ----------
    model
        The model, used in evaluation mode.
    table
        The features.
    edges, weights
        Edges of the correlation graph as pairs of rows, and their spanning weights.
    sample_weights
        How much each row counts in the reconstruction and singleton terms, with mean 1.
    n_draws
        Draws of z for each row.
    seed
        Seed of the noise.

    Examples
    --------
    >>> from corrvae.building import Architecture, build_model
    >>> table = FeatureTable(np.ones((5, 3)))
    >>> bound = evidence_bound(build_model(Architecture(3, 2), seed=0), table, np.array([[0, 1]]), np.ones(1))
    >>> bound.total == bound.reconstruction - bound.singleton - bound.edge
    True
    """
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            posterior = infer_posterior(model, table)
            device = next(model.parameters()).device
            marginals = Marginals(torch.from_numpy(np.hstack([posterior.mean, posterior.stddev])).to(device))
            n_rows = table.shape[0]
            shares = np.full(n_rows, 1.0 / n_rows) if sample_weights is None else sample_weights / n_rows
            singleton = float(objectives.singleton_kl(marginals).double().cpu().numpy() @ shares)
            reconstruction = float(_log_prob(model, table, posterior, n_draws, seed) @ shares)
            if edges is None or weights is None:
                return Bound(reconstruction, singleton)
            return Bound(reconstruction, singleton, _edge_sum(model, marginals, posterior, edges, weights) / n_rows)
    finally:
        model.train(training)


def _log_prob(
    model: CorrelatedModel, table: FeatureTable, posterior: Posterior, n_draws: int, seed: int
) -> Float[np.ndarray, " rows"]:
    """Give each row's log-probability, averaged over draws of its latent point."""
    generator, device = np.random.default_rng(seed), next(model.parameters()).device
    sums = np.zeros(table.shape[0])
    for begin in range(0, len(sums), _ROWS):
        chosen = np.arange(begin, min(begin + _ROWS, len(sums)))
        target = table.rows(chosen).to(device)
        mean, stddev = posterior.mean[chosen], posterior.stddev[chosen]
        for _ in range(n_draws):
            z = mean + stddev * generator.standard_normal(mean.shape, dtype=np.float32)
            log_prob = model.likelihood.log_prob(model.decoder(torch.from_numpy(z).to(device)), target)
            sums[chosen] += log_prob.double().cpu().numpy()
    return sums / n_draws


def _edge_sum(
    model: CorrelatedModel, marginals: Marginals, posterior: Posterior, edges: np.ndarray, weights: np.ndarray
) -> float:
    joint = marginals.joint
    prior = model.prior(posterior.n_components, joint.dtype, joint.device)
    total = 0.0
    for begin in range(0, len(edges), _EDGES):
        piece = edges[begin : begin + _EDGES]
        a = None
        if model.pair_network is not None:
            a = torch.from_numpy(posterior.pre_activation(piece)).to(joint)
        values = objectives.edge_term(marginals, torch.tensor(piece, device=joint.device), prior, a)
        total += float(values.double().cpu().numpy() @ weights[begin : begin + _EDGES])
    return total
