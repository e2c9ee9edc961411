"""The prior: linked latent points have correlation tau in every dimension, given or learned; draws along forests."""

from dataclasses import dataclass
from math import atanh
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.graphs.forests import OrderedForest

# A learned tau keeps this distance from -1 and 1, where the pair prior degenerates.
_MARGIN = 1e-6


@final
@dataclass(frozen=True, eq=False)
class PairPrior:
    """Constants of the pair prior in the edge term, computed in float64.

    For means m and standard deviations s of two vertices with correlation rho, in one dimension, the edge term is
    T = near (m_i - m_j)^2 + far (m_i + m_j)^2 + spread (s_i - s_j)^2 + product s_i s_j (tau - rho) sign tau
    + log(1 - tau^2) / 2 - log(1 - rho^2) / 2.
    At rho = 0 the standard deviations enter as spread (s_i^2 + s_j^2). A negative tau is turned positive together with
    rho, since 1 - |tau| is what must keep its digits.

    `near`, `far`, `spread` and `product` are tau / (4 (1 - tau)), -tau / (4 (1 + tau)), tau^2 / (2 (1 - tau^2)) and
    |tau| / (1 - tau^2); `complement` is 1 - |tau|; `constant` is log(1 - tau^2) / 2, summed over dimensions.
    """

    near: Float[Tensor, " dim"]
    far: Float[Tensor, " dim"]
    spread: Float[Tensor, " dim"]
    product: Float[Tensor, " dim"]
    sign: Float[Tensor, " dim"]
    complement: Float[Tensor, " dim"]
    constant: Float[Tensor, ""]

    @classmethod
    def of(
        cls,
        tau: float | Float[Tensor, "*dim"],
        n_components: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
    ) -> "PairPrior":
        """Compute the constants from tau: a number, or a tensor with one value or one for each latent dimension."""
        tau = torch.as_tensor(tau, dtype=torch.float64, device="cpu").expand(n_components)  # MPS has no float64
        sign = torch.where(tau.detach() < 0, -1.0, 1.0).double()
        determinant = (1.0 - tau) * (1.0 + tau)
        return cls(
            near=(tau / (4.0 * (1.0 - tau))).to(device, dtype),
            far=(-tau / (4.0 * (1.0 + tau))).to(device, dtype),
            spread=(tau * tau / (2.0 * determinant)).to(device, dtype),
            product=(sign * tau / determinant).to(device, dtype),
            sign=sign.to(device, dtype),
            complement=(1.0 - sign * tau).to(device, dtype),
            constant=(0.5 * (torch.log1p(-tau) + torch.log1p(tau)).sum()).to(device, dtype),
        )


def check_tau(tau: float) -> None:
    """Raise a `ValueError` unless tau is a correlation strictly between -1 and 1."""
    if not -1.0 < tau < 1.0:
        raise ValueError(f"tau must lie strictly between -1 and 1, got {tau}")


@final
class LearnedTau(nn.Module):
    """A tau in (-1, 1) that training adjusts: one for all latent dimensions, or one for each."""

    def __init__(self, start: float = 0.99, *, n_components: int | None = None) -> None:
        super().__init__()
        shape = () if n_components is None else (n_components,)
        self.raw = nn.Parameter(torch.full(shape, atanh(start / (1.0 - _MARGIN)), dtype=torch.float64).float())

    def start_at(self, tau: Float[Tensor, " dim"]) -> None:
        """Set tau."""
        with torch.no_grad():
            self.raw[: len(tau)] = (tau / (1.0 - _MARGIN)).atanh()

    def forward(self) -> Float[Tensor, "*dim"]:
        """Return tau in float64 on the CPU: 1 - tau must keep its digits."""
        return (1.0 - _MARGIN) * self.raw.to("cpu", torch.float64).tanh()


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
    from corrvae.model.kernels import descend

    z = generator.standard_normal((n_points, len(tau)))
    rooted = OrderedForest.of(n_points, forest)
    noise = z[rooted.order]
    descend(noise, np.zeros_like(noise), np.zeros_like(noise), rooted.parents, tau)
    z[rooted.order] = noise
    return z
