"""The pieces of the objectives' closed forms that need a derivative of their own, for accuracy or for speed."""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.nn.kernels import sums


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
        # cosh^-2 = 1 - tanh^2 is accurate while tanh is not close to 1, and the derivative needs tanh anyway.
        tanh, size = a.tanh(), a.abs()
        ctx.save_for_backward(tanh)
        far = torch.exp(-2.0 * size).log1p_().add_(size).sub_(log(2.0))
        near = tanh.square().neg_().log1p_().mul_(-0.5)
        return torch.where(size < 1.0, near, far)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        return gradients[0] * ctx.saved_tensors[0]


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
        ctx.save_for_backward(joint)
        values = joint.new_empty(len(joint))
        sums.singleton_kl(joint.numpy(), values.numpy())
        return values

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        (gradient,), (joint,) = gradients, ctx.saved_tensors
        into = torch.empty_like(joint)
        sums.singleton_kl_gradient(joint.numpy(), gradient.contiguous().numpy(), into.numpy())
        return into


def draw_with_kl(
    joint: Float[Tensor, "rows both"], noise: Float[Tensor, "drawn dim"]
) -> tuple[Float[Tensor, "drawn dim"], Float[Tensor, " drawn"]]:
    """Give mean + stddev noise and the KL divergence from N(0, I), for the first rows [mean, stddev].

    Examples
    --------
    >>> draw_with_kl(torch.ones(5, 6), torch.ones(1, 3))
    (tensor([[2., 2., 2.]]), tensor([1.5000]))
    """
    if joint.device.type == "cpu":
        return _DrawWithKL.apply(joint, noise)  # pyright: ignore[reportReturnType]
    head, half = joint[: len(noise)], noise.shape[1]
    return torch.addcmul(head[:, :half], head[:, half:], noise), kl_from_standard(head)


class _DrawWithKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, joint: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(joint, noise)
        z, kl = torch.empty_like(noise), joint.new_empty(len(noise))
        sums.draw_with_kl(joint.numpy(), noise.numpy(), z.numpy(), kl.numpy())
        return z, kl

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        joint, noise = ctx.saved_tensors
        of_z, of_kl = (gradient.contiguous().numpy() for gradient in gradients)
        into = torch.empty_like(joint)
        sums.draw_with_kl_gradient(joint.numpy(), noise.numpy(), of_z, of_kl, into.numpy())
        return into, None


def quadratic(
    rows: Float[Tensor, "rows columns"],
    first: Int[Tensor, " pairs"],
    second: Int[Tensor, " pairs"],
    apart: Float[Tensor, " columns"],
    together: Float[Tensor, " columns"],
    constant: Float[Tensor, ""],
) -> Float[Tensor, " pairs"]:
    """Sum over columns of ``apart (x_i - x_j)^2 + together (x_i + x_j)^2``, plus a constant, for pairs of rows.

    It is symmetric to the bit.

    Examples
    --------
    >>> rows, factors = torch.tensor([[1.0], [3.0]]), (torch.tensor([1.0]), torch.tensor([10.0]), torch.tensor(0.5))
    >>> quadratic(rows, torch.tensor([0]), torch.tensor([1]), *factors)
    tensor([164.5000])
    """
    learned = torch.is_grad_enabled() and (apart.requires_grad or together.requires_grad or constant.requires_grad)
    if rows.device.type == "cpu" and not learned:
        return _Quadratic.apply(rows, first, second, apart, together, constant)  # pyright: ignore[reportReturnType]
    x, y = rows.index_select(0, first), rows.index_select(0, second)
    return torch.mv((x - y).square(), apart) + torch.mv((x + y).square(), together) + constant


class _Quadratic(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, rows: Tensor, first: Tensor, second: Tensor, apart: Tensor, together: Tensor, constant: Tensor
    ) -> Tensor:
        ctx.save_for_backward(rows, first, second, apart, together)
        values = constant.repeat(len(first))
        sums.quadratic(*(part.numpy() for part in (rows, first, second, apart, together, values)))
        return values

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        saved = ctx.saved_tensors
        into = torch.zeros_like(saved[0])
        sums.quadratic_gradient(*(part.detach().numpy() for part in (*saved, gradients[0].contiguous(), into)))
        return into, None, None, None, None, None
