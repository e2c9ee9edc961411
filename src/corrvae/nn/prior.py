"""The pair prior: two latent points with correlation tau in every dimension, tau given or learned."""

from dataclasses import dataclass
from math import log1p
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

# A learned tau keeps this distance from -1 and 1, where the pair prior degenerates.
_MARGIN = 1e-6


@final
@dataclass(frozen=True, eq=False)
class PairPrior:
    """Constants of the pair prior in the edge term: numbers for a given tau, tensors for a learned one.

    They are formed in float64. For means m, standard deviations s and a posterior correlation rho, each in one
    dimension, the edge term is T = 1/2 [ apart (m_i - m_j)^2 - together (m_i + m_j)^2 + spread (s_i - s_j)^2
    + 2 product s_i s_j sign (tau - rho) + log_determinant - log(1 - rho^2) ],
    where `sign` is that of tau. `complement` is 1 - |tau|.
    """

    sign: float | Float[Tensor, "*dim"]
    complement: float | Float[Tensor, "*dim"]
    apart: float | Float[Tensor, "*dim"]
    together: float | Float[Tensor, "*dim"]
    spread: float | Float[Tensor, "*dim"]
    product: float | Float[Tensor, "*dim"]
    log_determinant: float | Float[Tensor, "*dim"]

    @classmethod
    def of(cls, tau: float | Float[Tensor, "*dim"], dtype: torch.dtype = torch.float32) -> "PairPrior":
        """Form the constants of tau: a number, or a tensor holding one value or one for each latent dimension.

        Examples
        --------
        >>> PairPrior.of(0.5).product
        0.6666666666666666
        """
        if not isinstance(tau, Tensor):
            check_tau(tau)
            return cls(*_constants(tau, -1.0 if tau < 0 else 1.0), log1p(-tau) + log1p(tau))
        exact = tau.double()
        sign = torch.where(exact.detach() < 0, -1.0, 1.0).to(exact)
        log_determinant = torch.log1p(-exact) + torch.log1p(exact)
        return cls(*(constant.to(dtype) for constant in (*_constants(exact, sign), log_determinant)))


def _constants(tau, sign):
    determinant = (1.0 - tau) * (1.0 + tau)
    return (
        sign,
        1.0 - sign * tau,
        tau / (2.0 * (1.0 - tau)),
        tau / (2.0 * (1.0 + tau)),
        tau * tau / determinant,
        sign * tau / determinant,
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
        self.raw = nn.Parameter(torch.full(shape, start / (1.0 - _MARGIN), dtype=torch.float64).atanh().float())

    def forward(self) -> Float[Tensor, "*dim"]:
        """Give tau, in float64: 1 - tau must keep its digits."""
        return (1.0 - _MARGIN) * self.raw.double().tanh()
