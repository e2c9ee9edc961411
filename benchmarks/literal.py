"""The model as the paper writes it, word for word: the tests' oracle and the baseline of the speed table.

Dense features, pairs concatenated and passed through the pair network in both orders, every end of every edge encoded
where it occurs, and closed forms as they stand in a textbook. It shares no formula with the library.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, softplus

from corrvae.model import CorrelatedModel


class LiteralModel(nn.Module):
    """CVAE with a multinomial likelihood, from plain linear layers."""

    def __init__(self, n_features: int, n_components: int = 100, hidden: int = 300, pair_hidden: int = 1000) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, 2 * n_components))
        self.decoder = nn.Sequential(nn.Linear(n_components, hidden), nn.ReLU(), nn.Linear(hidden, n_features))
        self.pair = nn.Sequential(
            nn.Linear(2 * n_features, pair_hidden), nn.ReLU(), nn.Linear(pair_hidden, n_components)
        )

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation."""
        mean, spread = self.encoder(x).chunk(2, dim=1)
        return mean, softplus(spread) + 1e-4

    def correlation(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        """Return the correlation of each pair, averaged over both orders before tanh."""
        there = self.pair(torch.cat([x_i, x_j], dim=1))
        back = self.pair(torch.cat([x_j, x_i], dim=1))
        return torch.tanh((there + back) / 2)

    @torch.no_grad()
    def copy_weights(self, model: CorrelatedModel) -> None:
        """Copy a library model's weights, concatenating what it holds in halves."""
        encoder, decoder, pair = model.encoder, model.decoder, getattr(model.family, "pair_network", None)
        self.encoder[0].weight.copy_(encoder.first.weight.T)
        self.encoder[0].bias.copy_(encoder.first.bias)
        self.encoder[2].load_state_dict(encoder.rest[1].state_dict())
        self.decoder.load_state_dict(decoder.layers.state_dict())
        if pair is not None:
            a, b = pair.weight.chunk(2, dim=1)
            self.pair[0].weight.copy_(torch.cat([a, b]).T)
            self.pair[0].bias.copy_(pair.bias)
            self.pair[2].load_state_dict(pair.last.state_dict())


@dataclass(frozen=True)
class LiteralTerms:
    """The objective's terms, per vertex."""

    reconstruction: Tensor
    singleton: Tensor
    edge: Tensor
    non_edge: Tensor
    total: Tensor


def literal_kl(mean: Tensor, stddev: Tensor) -> Tensor:
    return 0.5 * (mean**2 + stddev**2 - 1 - 2 * torch.log(stddev)).sum(1)


def literal_pair_kl(
    mean_i: Tensor, stddev_i: Tensor, mean_j: Tensor, stddev_j: Tensor, correlation: Tensor, tau: float
) -> Tensor:
    """KL between two-dimensional normals in each latent dimension: trace, quadratic form, determinants."""
    determinant = 1 - tau**2
    trace = (stddev_i**2 + stddev_j**2 - 2 * tau * correlation * stddev_i * stddev_j) / determinant
    quadratic = (mean_i**2 + mean_j**2 - 2 * tau * mean_i * mean_j) / determinant
    log_ratio = torch.log(determinant / (stddev_i**2 * stddev_j**2 * (1 - correlation**2)))
    return 0.5 * (trace + quadratic - 2 + log_ratio).sum(1)


def literal_terms(
    model: LiteralModel,
    X: Tensor,
    vertices: Tensor,
    noise: Tensor,
    edges: Tensor,
    weights: Tensor,
    pairs: Tensor | None,
    *,
    n_vertices: int,
    n_edges: int,
    tau: float = 0.99,
    gamma: float = 1.0,
) -> LiteralTerms:
    """Estimate the objective from drawn vertices, edges and pairs; without pairs it is CVAE_ind's.

    With all vertices, all edges and all pairs it is the full objective.
    """
    x = X[vertices]
    mean, stddev = model.encode(x)
    log_probabilities = log_softmax(model.decoder(mean + stddev * noise), dim=1)
    reconstruction = (x * log_probabilities).sum(1).mean()
    singleton = literal_kl(mean, stddev).mean()

    x_i, x_j = X[edges[:, 0]], X[edges[:, 1]]
    mean_i, stddev_i = model.encode(x_i)
    mean_j, stddev_j = model.encode(x_j)
    correlation = torch.zeros_like(mean_i) if pairs is None else model.correlation(x_i, x_j)
    pair_kl = literal_pair_kl(mean_i, stddev_i, mean_j, stddev_j, correlation, tau)
    terms = pair_kl - literal_kl(mean_i, stddev_i) - literal_kl(mean_j, stddev_j)
    edge = n_edges / n_vertices * (weights * terms).mean()
    if pairs is None:
        nothing = torch.zeros(())
        return LiteralTerms(reconstruction, singleton, edge, nothing, reconstruction - singleton - edge)

    correlation = model.correlation(X[pairs[:, 0]], X[pairs[:, 1]])
    information = -0.5 * torch.log(1 - correlation**2).sum(1)
    non_edge = (n_vertices - 1) / n_vertices * information.mean()
    total = reconstruction - (1 + gamma) * singleton - edge - gamma * non_edge
    return LiteralTerms(reconstruction, singleton, edge, non_edge, total)
