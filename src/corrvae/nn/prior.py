"""The pair prior: two latent points with correlation tau in every dimension, tau given or learned."""

from dataclasses import dataclass
from functools import lru_cache
from math import atanh
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.nn.closed_forms import QuadraticForm

# A learned tau keeps this distance from -1 and 1, where the pair prior degenerates.
_MARGIN = 1e-6


@final
@dataclass(frozen=True, eq=False)
class PairPrior:
    """Constants of the pair prior in the edge term, formed in float64.

    For means m and standard deviations s of two vertices and their correlation rho, each in one dimension, twice the
    edge term is
    (m_i - m_j)^2 tau / (2 (1 - tau)) - (m_i + m_j)^2 tau / (2 (1 + tau)) + (s_i - s_j)^2 tau^2 / (1 - tau^2)
    + 2 s_i s_j (tau - rho) tau / (1 - tau^2) + log(1 - tau^2) - log(1 - rho^2).
    For rho = 0 the standard deviations enter as (s_i^2 + s_j^2) tau^2 / (1 - tau^2), that is, through difference and
    sum alike. A negative tau is turned positive together with rho, since 1 - |tau| is what must keep its digits.

    Attributes
    ----------
    form
        The quadratic form of [mean, stddev] with log(1 - tau^2) / 2 as its constant, halved as all that follow.
    form_independent
        The same for rho = 0.
    product
        Factor of s_i s_j (|tau| - rho sign tau), for each dimension.
    minus_twice_sign, complement
        -2 sign tau and 1 - |tau|.

    Examples
    --------
    >>> PairPrior.of(0.5, 2).complement
    tensor([0.5000, 0.5000])
    """

    form: QuadraticForm
    form_independent: QuadraticForm
    product: Float[Tensor, " dim"]
    minus_twice_sign: Float[Tensor, " dim"]
    complement: Float[Tensor, " dim"]

    @classmethod
    def of(
        cls,
        tau: float | Float[Tensor, "*dim"],
        n_components: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
    ) -> "PairPrior":
        """Form the constants of tau: a number, or a tensor holding one value or one for each latent dimension.

        Examples
        --------
        >>> PairPrior.of(0.5, 3).product
        tensor([0.6667, 0.6667, 0.6667])
        """
        if isinstance(tau, Tensor):
            return _form(tau, n_components, dtype, device)
        return _form_given(tau, n_components, dtype, device)


@lru_cache(maxsize=64)
def _form_given(tau: float, n_components: int, dtype: torch.dtype, device: torch.device | None) -> PairPrior:
    check_tau(tau)
    # The constants outlive the caller's mode, and a tensor made in inference mode could not be trained with.
    with torch.inference_mode(False):
        return _form(torch.tensor(tau, dtype=torch.float64), n_components, dtype, device)


def _form(tau: Tensor, n_components: int, dtype: torch.dtype, device: torch.device | None) -> PairPrior:
    # In float64 on the CPU: not every device has it.
    tau = tau.to("cpu", torch.float64).expand(n_components)
    sign = torch.where(tau.detach() < 0, -1.0, 1.0).double()
    determinant = (1.0 - tau) * (1.0 + tau)
    near, far = tau / (4.0 * (1.0 - tau)), -tau / (4.0 * (1.0 + tau))
    spread = tau * tau / (2.0 * determinant)
    constant = 0.5 * (torch.log1p(-tau) + torch.log1p(tau)).sum()

    def form(*halves: Tensor) -> QuadraticForm:
        apart, together = torch.cat(halves[:2]), torch.cat(halves[2:])
        return QuadraticForm(*(part.to(device, dtype) for part in (apart, together, constant)))

    return PairPrior(
        form(near, spread, far, torch.zeros_like(spread)),
        form(near, 0.5 * spread, far, 0.5 * spread),
        *(part.to(device, dtype) for part in (sign * tau / determinant, -2.0 * sign, 1.0 - sign * tau)),
    )


def check_tau(tau: float) -> None:
    """Raise a `ValueError` unless tau is a correlation strictly between -1 and 1."""
    if not -1.0 < tau < 1.0:
        raise ValueError(f"tau must lie strictly between -1 and 1, got {tau}")


@final
class LearnedTau(nn.Module):
    """A tau in (-1, 1) that training adjusts: one for all latent dimensions, or one for each.

    Parameters
    ----------
    start
        Where it begins.
    n_components
        Number of latent dimensions for one tau each; ``None`` for one shared by all.

    Examples
    --------
    >>> LearnedTau(0.99)()
    tensor(0.9900, dtype=torch.float64, grad_fn=<MulBackward0>)
    """

    def __init__(self, start: float = 0.99, *, n_components: int | None = None) -> None:
        super().__init__()
        check_tau(start)
        if abs(start) > 1.0 - 2.0 * _MARGIN:
            raise ValueError(f"a learned tau must start at least {2 * _MARGIN} away from -1 and 1, got {start}")
        shape = () if n_components is None else (n_components,)
        # not by torch: on a device without memory, its atanh loads a compiler, which takes seconds
        self.raw = nn.Parameter(torch.full(shape, atanh(start / (1.0 - _MARGIN)), dtype=torch.float64).float())

    def forward(self) -> Float[Tensor, "*dim"]:
        """Give tau, in float64 (on the CPU): 1 - tau must keep its digits."""
        return (1.0 - _MARGIN) * self.raw.to("cpu", torch.float64).tanh()
