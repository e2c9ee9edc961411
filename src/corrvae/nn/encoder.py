"""The singleton posterior: features to a mean and a standard deviation for each latent dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.nn.layers import RowsLinear, check_widths, perceptron
from corrvae.nn.rows import Rows


@final
@dataclass(frozen=True, eq=False)
class Marginals:
    """Means and standard deviations of q(z_i given x_i) = N(mean, diag stddev^2), one row for each vertex.

    Both lie side by side in one matrix, `joint`, so that picking vertices is one gather.

    Examples
    --------
    >>> import torch
    >>> marginals = Marginals.of(torch.zeros(3, 2), torch.ones(3, 2))
    >>> marginals.at(torch.tensor([0, 2])).mean.shape
    torch.Size([2, 2])
    """

    joint: Float[Tensor, "vertices both"]

    @classmethod
    def of(cls, mean: Float[Tensor, "vertices dim"], stddev: Float[Tensor, "vertices dim"]) -> "Marginals":
        """Join means and standard deviations."""
        return cls(torch.cat([mean, stddev], 1))

    @property
    def mean(self) -> Float[Tensor, "vertices dim"]:
        """The means."""
        return self.joint[:, : self.joint.shape[1] // 2]

    @property
    def stddev(self) -> Float[Tensor, "vertices dim"]:
        """The standard deviations."""
        return self.joint[:, self.joint.shape[1] // 2 :]

    def at(self, positions: Int[Tensor, " picked"]) -> "Marginals":
        """Give the rows at these positions, in this order."""
        return Marginals(self.joint.index_select(0, positions))

    def head(self, count: int) -> "Marginals":
        """Give the first `count` rows."""
        return Marginals(self.joint[:count])


@final
class Encoder(nn.Module):
    """Features -> hidden layers (ReLU) -> mean and standard deviation.

    Parameters
    ----------
    n_features, n_components
        Number of features; latent dimension.
    hidden
        Widths of the hidden layers.
    floor
        The standard deviation is ``floor + softplus(output)``: it cannot collapse to zero.

    Examples
    --------
    >>> import torch
    >>> from corrvae.nn import DenseRows
    >>> marginals = Encoder(20, 4)(DenseRows(torch.rand(3, 20)))
    >>> marginals.mean.shape, bool((marginals.stddev > 0).all())
    (torch.Size([3, 4]), True)
    """

    def __init__(
        self, n_features: int, n_components: int, *, hidden: Sequence[int] = (300,), floor: float = 1e-4
    ) -> None:
        super().__init__()
        widths = (*check_widths("hidden", hidden), 2 * n_components)
        if floor <= 0:
            raise ValueError(f"floor must be positive, got {floor}")
        self.n_components = n_components
        self.floor = floor
        self.first = RowsLinear(n_features, widths[0])
        self.rest = perceptron(widths, after_hidden=True)

    def forward(self, rows: Rows) -> Marginals:
        """Encode each row on its own."""
        return Marginals(_SoftplusRight.apply(self.rest(self.first(rows)), self.floor))


class _SoftplusRight(torch.autograd.Function):
    """floor + softplus in the right half of a matrix, the left half as it is.

    One exponential serves both ways: softplus(x) = log(1 + e) and its derivative e / (1 + e), with e = exp(x). From 20
    on softplus(x) is x to the last digit.
    """

    @staticmethod
    def forward(ctx, outputs: Tensor, floor: float) -> Tensor:
        half = outputs.shape[1] // 2
        raw = outputs[:, half:]
        exponential = raw.clamp(max=20.0).exp_()
        joint = outputs.clone()
        right = joint[:, half:]
        torch.maximum(exponential.log1p(), raw, out=right).add_(floor)
        ctx.save_for_backward(exponential)
        return joint

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,), (exponential,) = gradients, ctx.saved_tensors
        into = gradient.clone()
        into[:, exponential.shape[1] :].mul_(exponential).div_(exponential + 1.0)
        return into, None
