"""The pieces of the objectives' closed forms that need a derivative of their own, for accuracy or for speed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.nn.kernels import choice, sums


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
    half = joint.shape[1] // 2
    return 0.5 * (joint.square().sum(1) - half) - joint[:, half:].log().sum(1)


@final
@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """``apart (x_i - x_j)^2 + together (x_i + x_j)^2``, summed over columns, plus a constant, for pairs of rows.

    It is symmetric to the bit.

    Examples
    --------
    >>> form = QuadraticForm(torch.tensor([1.0]), torch.tensor([10.0]), torch.tensor(0.5))
    >>> form(torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 1]]))
    tensor([164.5000])
    """

    apart: Float[Tensor, " columns"]
    together: Float[Tensor, " columns"]
    constant: Float[Tensor, ""]

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the form consists of, on a CPU and not learned."""
        return self.apart.numpy(), self.together.numpy(), self.constant.numpy()

    @property
    def learned(self) -> bool:
        """Whether the form itself is to be differentiated."""
        return self.apart.requires_grad

    def __call__(self, rows: Float[Tensor, "rows columns"], pairs: Int[Tensor, "pairs 2"]) -> Float[Tensor, " pairs"]:
        """Evaluate the form at pairs of rows."""
        x, y = rows.index_select(0, pairs[:, 0]), rows.index_select(0, pairs[:, 1])
        return torch.mv((x - y).square(), self.apart) + torch.mv((x + y).square(), self.together) + self.constant


def draw_and_compare(
    joint: Float[Tensor, "rows both"],
    noise: Float[Tensor, "drawn dim"],
    pairs: Int[Tensor, "pairs 2"],
    form: QuadraticForm,
) -> tuple[Float[Tensor, "drawn dim"], Float[Tensor, " drawn"], Float[Tensor, " pairs"]]:
    """For rows [mean, stddev]: mean + stddev noise, the KL divergence from N(0, I), and a quadratic form.

    The first two are for the first rows, as many as there is noise for; the form is evaluated at pairs of rows. On a
    CPU the three are one function with one derivative.

    Examples
    --------
    >>> form = QuadraticForm(torch.ones(6), torch.zeros(6), torch.tensor(0.5))
    >>> draw_and_compare(torch.ones(5, 6), torch.ones(1, 3), torch.tensor([[0, 4]]), form)
    (tensor([[2., 2., 2.]]), tensor([1.5000]), tensor([0.5000]))
    """
    if joint.device.type == "cpu" and not form.learned:
        return _DrawAndCompare.apply(joint, noise, pairs, form)  # pyright: ignore[reportReturnType]
    return _by_tensor_operations(joint, noise, pairs, form)


def _by_tensor_operations(
    joint: Tensor, noise: Tensor, pairs: Tensor, form: QuadraticForm
) -> tuple[Tensor, Tensor, Tensor]:
    head, half = joint[: len(noise)], noise.shape[1]
    z = torch.addcmul(head[:, :half], head[:, half:], noise)
    return z, kl_from_standard(head), form(joint, pairs)


class _DrawAndCompare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, joint: Tensor, noise: Tensor, pairs: Tensor, form: QuadraticForm) -> tuple[Tensor, Tensor, Tensor]:
        ctx.form = form
        ctx.save_for_backward(joint, noise, pairs)
        return compare_forward(joint, noise, pairs, form)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        joint, noise, pairs = ctx.saved_tensors
        return compare_backward(gradients, joint, noise, pairs, ctx.form), None, None, None


def compare_forward(joint: Tensor, noise: Tensor, pairs: Tensor, form: QuadraticForm) -> tuple[Tensor, Tensor, Tensor]:
    """Give what `draw_and_compare` gives, on a CPU and without a derivative."""
    if not choice.used():
        return _by_tensor_operations(joint, noise, pairs, form)
    rows, normal, places = joint.numpy(), noise.numpy(), pairs.numpy()
    z, kl, values = np.empty_like(normal), np.empty(len(normal), rows.dtype), np.empty(len(places), rows.dtype)
    sums.draw_and_compare(rows, normal, places, *form.arrays, z, kl, values)
    return torch.from_numpy(z), torch.from_numpy(kl), torch.from_numpy(values)


def compare_backward(
    gradients: Sequence[Tensor], joint: Tensor, noise: Tensor, pairs: Tensor, form: QuadraticForm
) -> Tensor:
    """Give the gradient with respect to `joint` from those of the three results, on a CPU."""
    if not choice.used():
        return _gradient_by_tensor_operations(gradients, joint, noise, pairs, form)
    into, (apart, together, _) = torch.empty_like(joint), form.arrays
    given = joint.numpy(), noise.numpy(), pairs.numpy(), apart, together
    of_z, of_kl, of_values = gradients
    slopes = of_z.contiguous().numpy(), of_kl.contiguous().numpy(), of_values.contiguous().numpy()
    sums.draw_and_compare_gradient(*given, *slopes, into.numpy())
    return into


def _gradient_by_tensor_operations(
    gradients: Sequence[Tensor], joint: Tensor, noise: Tensor, pairs: Tensor, form: QuadraticForm
) -> Tensor:
    of_z, of_kl, of_values = gradients[0], gradients[1][:, None], gradients[2][:, None]
    n_drawn, half = noise.shape
    mean, stddev = joint[:n_drawn, :half], joint[:n_drawn, half:]
    into = torch.zeros_like(joint)
    into[:n_drawn, :half] = torch.addcmul(of_z, of_kl, mean)
    into[:n_drawn, half:] = torch.addcmul(of_z * noise, of_kl, stddev - stddev.reciprocal())
    i, j = pairs[:, 0], pairs[:, 1]
    x, y = joint.index_select(0, i), joint.index_select(0, j)
    across, along = 2.0 * of_values * form.apart * (x - y), 2.0 * of_values * form.together * (x + y)
    return into.index_add_(0, i, along + across).index_add_(0, j, along - across)
