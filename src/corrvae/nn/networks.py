"""Encoder and decoder: features to a singleton posterior, a latent point to the parameters of its features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from corrvae.nn.layers import RowsLinear, check_widths, perceptron
from corrvae.nn.rows import Rows


@final
@dataclass(frozen=True, eq=False)
class Marginals:
    """Means and standard deviations of q(z_i given x_i) = N(mean, diag stddev^2), one row for each vertex.

    Both lie side by side in one matrix, `joint`, so that picking vertices is one gather.
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


@final
class Encoder(nn.Module):
    """Features -> hidden layers (ReLU) -> mean and standard deviation ``floor + softplus(output)``.

    With `skip`, an affine map of the features is added to the mean, beside the hidden layers.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        *,
        hidden: Sequence[int] = (300,),
        floor: float = 1e-4,
        skip: bool = False,
    ) -> None:
        super().__init__()
        widths = (*check_widths("hidden", hidden), 2 * n_components)
        self.n_components = n_components
        self.floor = floor
        # Rows are read once for both paths. Without hidden layers the encoder is affine anyway.
        self.skip = n_components if skip and hidden else 0
        self.first = RowsLinear(n_features, widths[0] + self.skip)
        self.rest = perceptron(widths, after_hidden=True)

    def forward(self, rows: Rows) -> Marginals:
        """Encode each row on its own."""
        read = self.first(rows)
        outputs = self.rest(read[:, : read.shape[1] - self.skip])
        mean, spread = outputs.chunk(2, dim=1)
        if self.skip:
            mean = mean + read[:, -self.skip :]
        return Marginals.of(mean, softplus(spread) + self.floor)

    def start_linear(
        self, weight: Float[Tensor, "features dim"], bias: Float[Tensor, " dim"], stddev: Float[Tensor, " dim"]
    ) -> None:
        """Set the weights so that at first the mean is affine in the features, and the standard deviation constant.

        Needs `skip`, or no hidden layers.
        """
        n, dim = self.n_components, len(bias)
        spread = (stddev - self.floor).clamp(min=1e-6).expm1().log()  # the inverse of softplus
        with torch.no_grad():
            last: Any = self.rest[-1] if self.skip else self.first
            last.weight.zero_()
            last.bias.zero_()
            last.bias[n : n + dim] = spread
            begin = len(self.first.bias) - self.skip if self.skip else 0
            self.first.weight[:, begin : begin + dim] = weight
            self.first.bias[begin : begin + dim] = bias


@final
class Decoder(nn.Module):
    """Latent point -> hidden layers (ReLU) -> one output for each feature, which the likelihood interprets."""

    def __init__(self, n_components: int, n_features: int, *, hidden: Sequence[int] = (300,)) -> None:
        super().__init__()
        self.layers = perceptron((n_components, *check_widths("hidden", hidden), n_features))

    def forward(self, z: Float[Tensor, "*points dim"]) -> Float[Tensor, "*points features"]:
        """Decode latent points."""
        return self.layers(z)
