"""Encoder and decoder: features to a singleton posterior, a latent point to the parameters of its features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

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

    Examples
    --------
    >>> Marginals.of(torch.zeros(3, 2), torch.ones(3, 2)).mean.shape
    torch.Size([3, 2])
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

    Parameters
    ----------
    n_features, n_components
        Number of features; latent dimension.
    hidden
        Widths of the hidden layers.
    floor
        Smallest standard deviation, so that it cannot collapse to zero.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> marginals = Encoder(20, 4)(DenseRows(torch.rand(3, 20)))
    >>> marginals.mean.shape, bool((marginals.stddev > 0).all())
    (torch.Size([3, 4]), True)
    """

    def __init__(
        self, n_features: int, n_components: int, *, hidden: Sequence[int] = (300,), floor: float = 1e-4
    ) -> None:
        super().__init__()
        if floor <= 0:
            raise ValueError(f"floor must be positive, got {floor}")
        widths = (*check_widths("hidden", hidden), 2 * n_components)
        self.n_components = n_components
        self.floor = floor
        self.first = RowsLinear(n_features, widths[0])
        self.rest = perceptron(widths, after_hidden=True)

    def forward(self, rows: Rows) -> Marginals:
        """Encode each row on its own."""
        mean, spread = self.rest(self.first(rows)).chunk(2, dim=1)
        return Marginals.of(mean, softplus(spread) + self.floor)


@final
class Decoder(nn.Module):
    """Latent point -> hidden layers (ReLU) -> one output for each feature, which the likelihood interprets.

    Parameters
    ----------
    n_components, n_features
        Latent dimension; number of features.
    hidden
        Widths of the hidden layers.

    Examples
    --------
    >>> Decoder(4, 20)(torch.zeros(3, 4)).shape
    torch.Size([3, 20])
    """

    def __init__(self, n_components: int, n_features: int, *, hidden: Sequence[int] = (300,)) -> None:
        super().__init__()
        self.layers = perceptron((n_components, *check_widths("hidden", hidden), n_features))

    def forward(self, z: Float[Tensor, "*points dim"]) -> Float[Tensor, "*points features"]:
        """Decode latent points."""
        return self.layers(z)
