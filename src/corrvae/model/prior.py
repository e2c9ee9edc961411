"""The pair prior: two latent points with correlation tau in every dimension, tau given or learned."""

from dataclasses import dataclass
from functools import lru_cache
from math import atanh
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

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
        if isinstance(tau, Tensor):
            return _compute(tau, n_components, dtype, device)
        return _compute_fixed(tau, n_components, dtype, device)


@lru_cache(maxsize=64)
def _compute_fixed(tau: float, n_components: int, dtype: torch.dtype, device: torch.device | None) -> PairPrior:
    check_tau(tau)
    # A tensor made in inference mode cannot be used in training later.
    with torch.inference_mode(False):
        return _compute(torch.tensor(tau, dtype=torch.float64), n_components, dtype, device)


def _compute(tau: Tensor, n_components: int, dtype: torch.dtype, device: torch.device | None) -> PairPrior:
    tau = tau.to("cpu", torch.float64).expand(n_components)  # not every device has float64
    sign = torch.where(tau.detach() < 0, -1.0, 1.0).double()
    determinant = (1.0 - tau) * (1.0 + tau)
    return PairPrior(
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
        check_tau(start)
        if abs(start) > 1.0 - 2.0 * _MARGIN:
            raise ValueError(f"a learned tau must start at least {2 * _MARGIN} away from -1 and 1, got {start}")
        shape = () if n_components is None else (n_components,)
        self.raw = nn.Parameter(torch.full(shape, atanh(start / (1.0 - _MARGIN)), dtype=torch.float64).float())

    def start_at(self, tau: Float[Tensor, " dim"]) -> None:
        """Set tau."""
        with torch.no_grad():
            self.raw[: len(tau)] = (tau / (1.0 - _MARGIN)).atanh()

    def forward(self) -> Float[Tensor, "*dim"]:
        """Return tau in float64 on the CPU: 1 - tau must keep its digits."""
        return (1.0 - _MARGIN) * self.raw.to("cpu", torch.float64).tanh()
