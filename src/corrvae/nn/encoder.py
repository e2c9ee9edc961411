"""The singleton posterior: features to a mean and a standard deviation for each latent dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.nn.chains import encode_chain, parameters_of, weight_and_bias
from corrvae.nn.layers import RowsLinear, check_columns, check_widths, perceptron
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
        return Marginals(encode_chain(rows, self.floor, self.parameters_for(rows)))

    def parameters_for(self, rows: Rows) -> list[Tensor]:
        """Give weight and bias of each layer, after a look at whether these rows have its columns."""
        weight, bias = weight_and_bias(self.first)
        check_columns(rows, weight.shape[0])
        return [weight, bias, *parameters_of(self.rest)]
