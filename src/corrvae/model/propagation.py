"""Belief propagation on a rooted forest, in every latent dimension by itself, with its gradient.

Each vertex i has evidence phi_i(z) = exp(-lambda_i z^2 / 2 + h_i z). The posterior along a forest T is
q(z) proportional to p0(z; T) prod_i phi_i(z_i). With t the prior's correlation, s = 1 - t^2 (at a root t = 0, s = 1):

- Upwards, children before parents: a = lambda + sum over children of t^2 a_c / D_c, b = h + sum of t b_c / D_c, with
  D = 1 + s a.
- Downwards: q(z_i given z_p) = N((s b + t z_p) / D, s / D), so m = (s b + t m_p) / D and v = s / D + t^2 v_p / D^2.
- KL(q || p0) = sum_i KL_i with KL_i = [log D - s a / D + s ((b - t a m_p)^2 + t^2 a^2 v_p) / D^2] / 2, the divergence
  of z_i given its parent. No term is negative, so nothing cancels.

All of it is linear in vertices times dimensions. The kernels (`model.kernels`) compute in float64 on the CPU whatever
the device.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from corrvae.graphs.forests import OrderedForest
from corrvae.model.kernels import combine_upwards, differentiate, spread_downwards


class Propagated(NamedTuple):
    """What evidence and a forest tell of each vertex: its marginal, and KL of its posterior given its parent.

    That KL is from the prior given its parent, summed over dimensions; their sum over vertices is KL(q || p0).
    """

    mean: Float[Tensor, "vertices dim"]
    variance: Float[Tensor, "vertices dim"]
    kl: Float[Tensor, " vertices"]


def propagate(
    precision: Float[Tensor, "vertices dim"],
    information: Float[Tensor, "vertices dim"],
    tau: Float[Tensor, " dim"],
    forest: OrderedForest,
) -> Propagated:
    """Combine the evidence of all vertices along a forest; differentiable in evidence and tau.

    The precision lambda is not negative; tau is in float64 on the CPU.
    """
    return Propagated(*_Propagate.apply(precision, information, tau, forest))  # pyright: ignore[reportGeneralTypeIssues]


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, precision: Tensor, information: Tensor, tau: Tensor, forest: OrderedForest):
        a, b = (_take(part, forest) for part in (precision, information))
        t = np.ascontiguousarray(tau.detach().numpy())
        combine_upwards(a, b, forest.parents, t)
        mean, variance, kl = spread_downwards(a, b, forest.parents, t)
        ctx.kept = a, b, mean, variance, t, forest
        return tuple(_put_back(part, forest, precision) for part in (mean, variance, kl))

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        a, b, mean, variance, t, forest = ctx.kept
        of_mean, of_variance, of_kl = (_take(part, forest) for part in gradients)
        found = differentiate(a, b, mean, variance, forest.parents, t, of_mean, of_variance, of_kl)
        like = gradients[0]
        return *(_put_back(part, forest, like) for part in found[:2]), torch.from_numpy(found[2]), None


def _take(values: Tensor, forest: OrderedForest) -> np.ndarray:
    """Return values in the order of the forest, in float64."""
    return values.detach().cpu().numpy()[forest.order].astype(np.float64)


def _put_back(values: np.ndarray, forest: OrderedForest, like: Tensor) -> Tensor:
    """Return values in the order of the vertices, as a tensor of the type and on the device of another."""
    placed = torch.empty(values.shape, dtype=like.dtype)
    placed.numpy()[forest.order] = values
    return placed.to(like.device)
