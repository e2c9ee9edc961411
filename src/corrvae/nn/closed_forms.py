"""The pieces of the objectives' closed forms that need a derivative of their own, for accuracy or for speed."""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor


def log_cosh(a: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Log cosh a, with small relative error near 0 and no overflow far from it; its derivative is tanh a.

    Examples
    --------
    >>> log_cosh(torch.tensor([0.0, 1e-3, 1000.0]))
    tensor([0.0000e+00, 5.0000e-07, 9.9931e+02])
    """
    return _LogCosh.apply(a)  # pyright: ignore[reportReturnType]


class _LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        size = a.abs()
        far = torch.exp(-2.0 * size).log1p_().add_(size).sub_(log(2.0))
        near = size.clamp(max=1.0).sinh_().square_().log1p_().mul_(0.5)
        return torch.where(size < 1.0, near, far)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        (gradient,), (a,) = gradients, ctx.saved_tensors
        return gradient * a.tanh()


def kl_from_standard(joint: Float[Tensor, "rows both"]) -> Float[Tensor, " rows"]:
    """KL divergence of N(mean, diag stddev^2) from N(0, I), for each row [mean, stddev].

    Examples
    --------
    >>> kl_from_standard(torch.ones(1, 6))
    tensor([1.5000])
    """
    if joint.device.type == "cpu":
        return _KLFromStandard.apply(joint)  # pyright: ignore[reportReturnType]
    half = joint.shape[1] // 2
    return 0.5 * (joint.square().sum(1) - half) - joint[:, half:].log().sum(1)


class _KLFromStandard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, joint: Tensor) -> Tensor:
        from corrvae.nn.kernels import sums

        ctx.save_for_backward(joint)
        values = joint.new_empty(len(joint))
        sums.singleton_kl(joint.numpy(), values.numpy())
        return values

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        from corrvae.nn.kernels import sums

        (gradient,), (joint,) = gradients, ctx.saved_tensors
        into = torch.empty_like(joint)
        sums.singleton_kl_gradient(joint.numpy(), gradient.contiguous().numpy(), into.numpy())
        return into


def quadratic(
    rows: Float[Tensor, "rows columns"],
    first: Int[Tensor, " pairs"],
    second: Int[Tensor, " pairs"],
    apart: Float[Tensor, " columns"],
    together: Float[Tensor, " columns"],
) -> Float[Tensor, " pairs"]:
    """Sum over columns of ``apart (x_i - x_j)^2 + together (x_i + x_j)^2``, for pairs of rows; symmetric to the bit.

    Examples
    --------
    >>> rows = torch.tensor([[1.0], [3.0]])
    >>> quadratic(rows, torch.tensor([0]), torch.tensor([1]), torch.tensor([1.0]), torch.tensor([10.0]))
    tensor([164.])
    """
    learned = torch.is_grad_enabled() and (apart.requires_grad or together.requires_grad)
    if rows.device.type == "cpu" and not learned:
        return _Quadratic.apply(rows, first, second, apart, together)  # pyright: ignore[reportReturnType]
    x, y = rows.index_select(0, first), rows.index_select(0, second)
    return torch.mv((x - y).square(), apart) + torch.mv((x + y).square(), together)


class _Quadratic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, first: Tensor, second: Tensor, apart: Tensor, together: Tensor) -> Tensor:
        from corrvae.nn.kernels import sums

        ctx.save_for_backward(rows, first, second, apart, together)
        values = rows.new_empty(len(first))
        sums.quadratic(*(part.numpy() for part in (rows, first, second, apart, together, values)))
        return values

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        from corrvae.nn.kernels import sums

        (gradient,), saved = gradients, ctx.saved_tensors
        into = torch.zeros_like(saved[0])
        sums.quadratic_gradient(*(part.detach().numpy() for part in (*saved, gradient.contiguous(), into)))
        return into, None, None, None, None
