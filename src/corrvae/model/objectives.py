"""The terms of the objectives, one function for one formula, and their weighted sum.

All objectives are maximised and divided by the number of vertices. Closed forms are summed over latent dimensions.
Correlations enter as pre-activations a with rho = tanh(a), so that 1 - rho and 1 - rho^2 keep their digits when rho is
close to 1.

- VAE: E log p - mean_i KL_i
- CVAE: VAE - (1/n) sum_e w_e T_e
- CVAE_corr: CVAE - gamma_kl mean_i KL_i - gamma_mi (2/n^2) sum_{i<j} I_ij
- With candidates that compete: any of these + contrast mean_e log softmax_j(log-odds / T), a bound on log p(G given X)
- Adaptive forests: less 1/(eta n) times the KL of their distribution from the graph's own
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import log
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from corrvae.model.prior import PairPrior
from corrvae.nn import Marginals

TERMS = ("reconstruction", "singleton", "edge", "non_edge", "contrast", "forests", "total")


@final
@dataclass(eq=False)
class Terms:
    """An objective as named terms, each an unbiased estimate per vertex, in nats.

    The estimate of a term is ``sum(weights * values)``, and the objective the sum of estimates times `coefficients`.
    """

    values: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    coefficients: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, coefficient: float, values: Tensor, weights: Tensor) -> "Terms":
        """Add a term and return the terms."""
        self.values[name], self.weights[name], self.coefficients[name] = values, weights, coefficient
        return self

    @cached_property
    def estimates(self) -> Float[Tensor, " terms"]:
        """The estimate of each term."""
        return torch.stack([torch.dot(self.values[name], self.weights[name]) for name in self.values])

    def total(self, warmup: float = 1.0) -> Float[Tensor, ""]:
        """Return the objective; `warmup` scales all terms but the reconstruction."""
        return torch.dot(self.estimates, self.estimates.new_tensor(self._coefficients(warmup)))

    def numbers(self, warmup: float = 1.0) -> dict[str, float]:
        """Return the estimates and the total by name, in one transfer from the device."""
        found = self.estimates.tolist()
        total = sum(coefficient * number for coefficient, number in zip(self._coefficients(warmup), found, strict=True))
        return {**dict(zip(self.values, found, strict=True)), "total": total}

    def _coefficients(self, warmup: float) -> list[float]:
        return [c if name == "reconstruction" else c * warmup for name, c in self.coefficients.items()]


def bound(numbers: dict[str, float]) -> float:
    """Return the evidence lower bound from estimates by name: the objective without the terms that gamma adds."""
    return numbers["reconstruction"] - numbers["singleton"] - numbers.get("edge", 0.0) - numbers.get("forests", 0.0)


def singleton_kl(marginals: Marginals) -> Float[Tensor, " vertices"]:
    """KL_i = KL(q_i || p0) = sum over dimensions of (mu^2 + s^2 - 1) / 2 - log s."""
    n_components = marginals.joint.shape[1] // 2
    return 0.5 * (marginals.joint.square().sum(1) - n_components) - marginals.stddev.log().sum(1)


def edge_term(
    marginals: Marginals,
    edges: Int[Tensor, "edges 2"],
    prior: PairPrior,
    pre_activation: Float[Tensor, "edges dim"] | None = None,
) -> Float[Tensor, " edges"]:
    """T_ij = KL(q_ij || p0_ij) - KL_i - KL_j for each edge, a pair of positions in `marginals`.

    `pre_activation` is a with rho = tanh(a), for each edge; ``None`` for independent posteriors (rho = 0).
    """
    ends = marginals.joint.index_select(0, edges.T.reshape(-1))
    x, y = ends[: len(edges)], ends[len(edges) :]
    if pre_activation is None:
        apart, together = torch.cat([prior.near, 0.5 * prior.spread]), torch.cat([prior.far, 0.5 * prior.spread])
        return torch.mv((x - y).square(), apart) + torch.mv((x + y).square(), together) + prior.constant
    dim = len(prior.near)
    quadratic = torch.mv((x - y).square(), torch.cat([prior.near, prior.spread]))
    quadratic = quadratic + torch.mv((x[:, :dim] + y[:, :dim]).square(), prior.far) + prior.constant
    # tau - rho as (1 - rho) - (1 - tau), both accurate when the correlations are close to 1.
    excess = 2.0 * torch.sigmoid(-2.0 * prior.sign * pre_activation) - prior.complement
    return quadratic + torch.mv(x[:, dim:] * y[:, dim:] * excess, prior.product) + mutual_information(pre_activation)


def mutual_information(pre_activation: Float[Tensor, "pairs dim"]) -> Float[Tensor, " pairs"]:
    """I_ij = -1/2 log(1 - rho^2) = log cosh a, summed over dimensions."""
    return log_cosh(pre_activation).sum(1)


def log_odds_block(first: Marginals, second: Marginals, tau: Float[Tensor, "*dim"]) -> Float[Tensor, "firsts seconds"]:
    """Compute the log-odds of a link for every pair of two sets, up to a constant, at the sets' mean variances.

    With one u = 1 - s^2 for all points of a dimension, D = 1 - tau^2 u^2, the sum over dimensions of
    (2 tau m_i m_j - tau^2 u (m_i^2 + m_j^2)) / (2 D) is one matrix product. Scores of trained models use each point's
    own variance (`corrvae.scoring`).
    """
    u = 1.0 - torch.cat([first.stddev, second.stddev]).clamp(max=1.0).square().mean(0)
    tau = tau.to(u)
    D = 1.0 - (tau * u).square()
    own = 0.5 * tau.square() * u / D
    x, y = (torch.mv(points.mean.square(), own) for points in (first, second))
    return (first.mean * (tau / D)) @ second.mean.T - x[:, None] - y


def competition(scores: Float[Tensor, "pairs pairs"], excluded: Bool[Tensor, "pairs pairs"]) -> Float[Tensor, " pairs"]:
    """Compute the log-probability of each pair i (the diagonal) among all j that it competes with, from either side.

    The mean of log softmax_j(scores_ij) and log softmax_j(scores_ji) at j = i, without excluded pairs. With log-odds as
    scores this bounds the mutual information of the two ends of an edge (InfoNCE).
    """
    scores = scores.masked_fill(excluded, -torch.inf)
    return scores.diagonal() - 0.5 * (scores.logsumexp(0) + scores.logsumexp(1))


def beyond_nearest(scores: Float[Tensor, "pairs pairs"], k: int) -> Bool[Tensor, "pairs pairs"]:
    """Return what is neither on the diagonal nor among the k largest others of its row or of its column.

    Examples
    --------
    >>> beyond_nearest(torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.5], [0.1, 0.2, 0.0]]), 1)
    tensor([[False, False, False],
            [False, False, False],
            [ True, False, False]])
    """
    beyond = torch.ones_like(scores, dtype=torch.bool).fill_diagonal_(False)
    others = scores.masked_fill(~beyond, -torch.inf)
    for dim in (0, 1):
        beyond.scatter_(dim, others.topk(min(k, len(scores)), dim).indices, False)
    return beyond


def log_cosh(a: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Log cosh a, with small relative error near 0 and no overflow far from it; its derivative is tanh a."""
    return _LogCosh.apply(a)  # pyright: ignore[reportReturnType]


class _LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor) -> Tensor:
        # cosh^-2 = 1 - tanh^2 is accurate while tanh is not close to 1, and the derivative needs tanh anyway.
        tanh, size = a.tanh(), a.abs()
        ctx.save_for_backward(tanh)
        far = torch.exp(-2.0 * size).log1p_().add_(size).sub_(log(2.0))
        near = tanh.square().neg_().log1p_().mul_(-0.5)
        return torch.where(size < 1.0, near, far)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        return gradients[0] * ctx.saved_tensors[0]
