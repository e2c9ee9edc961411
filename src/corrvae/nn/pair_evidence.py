"""A small network from the features of a pair to the log-odds of a link and the correlation of the latent points."""

from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.graphs.pair_features import EXCHANGED, NAMES
from corrvae.nn.layers import perceptron

_HIDDEN = (24, 24)
_STEPS, _BATCH, _RATE, _DECAY = 1500, 128, 5e-3, 0.3


@final
class PairEvidence(nn.Module):
    """s_ij = (f(phi_ij) + f(phi_ji)) / 2 and rho_k = tanh(b_k + c_k s), where f is a perceptron beside a linear map.

    phi are the features of `corrvae.graphs.PairFeatures`, brought to mean 0 and standard deviation 1. s is the log-odds
    of a link, up to a constant. c_k is positive: a likelier link has a larger correlation in every latent dimension.
    All are trained with the encoder, unless f is fitted by `compete`: then it is kept.
    """

    mean: Tensor
    scale: Tensor
    exchanged: Tensor

    def __init__(self, n_components: int) -> None:
        super().__init__()
        self.layers = perceptron((len(NAMES), *_HIDDEN, 1))
        self.linear = nn.Linear(len(NAMES), 1, bias=False)
        self.register_buffer("mean", torch.zeros(len(NAMES)))
        self.register_buffer("scale", torch.ones(len(NAMES)))
        self.register_buffer("exchanged", torch.tensor(EXCHANGED), persistent=False)
        self.offset = nn.Parameter(torch.zeros(n_components))
        self.slope = nn.Parameter(torch.full((n_components,), 0.1).log())

    def forward(self, phi: Float[Tensor, "*pairs features"]) -> Float[Tensor, "*pairs"]:
        """Return the log-odds s of pairs, up to a constant."""
        phi = (phi - self.mean) / self.scale
        both = torch.stack([phi, phi[..., self.exchanged]])
        return (self.layers(both) + self.linear(both)).mean(0)[..., 0]

    def pre_activation(self, s: Float[Tensor, "*pairs"]) -> Float[Tensor, "*pairs dim"]:
        """Return a with correlation tanh(a) in each latent dimension."""
        return self.offset + self.slope.exp() * s[..., None]

    def standardise(self, phi: Float[np.ndarray, "rows candidates features"], is_open: np.ndarray) -> None:
        """Bring features to mean 0 and standard deviation 1."""
        flat = np.concatenate([phi[is_open], phi[is_open][:, EXCHANGED]])  # in both orders, as they are read
        self.mean.copy_(torch.from_numpy(flat.mean(0)))
        self.scale.copy_(torch.from_numpy(flat.std(0) + 1e-3))

    def compete(
        self, phi: Float[np.ndarray, "rows candidates features"], is_open: np.ndarray, generator: np.random.Generator
    ) -> None:
        """Fit f on rows of candidates of which the first is the link: it competes with the others."""
        fitted = nn.ModuleList([self.layers, self.linear]).requires_grad_()
        optimizer = torch.optim.AdamW(fitted.parameters(), lr=_RATE, weight_decay=_DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=_STEPS)
        for _ in range(_STEPS):
            rows = generator.integers(0, len(phi), min(_BATCH, len(phi)))
            optimizer.zero_grad()
            competition(self(torch.from_numpy(phi[rows])), torch.from_numpy(is_open[rows])).mean().backward()
            optimizer.step()
            schedule.step()
        fitted.requires_grad_(False)


def competition(s: Float[Tensor, "rows candidates"], is_open: Tensor) -> Float[Tensor, " rows"]:
    """-log of the softmax of the first candidate among the open ones."""
    return torch.logsumexp(s.masked_fill(~is_open, -torch.inf), dim=1) - s[:, 0]
