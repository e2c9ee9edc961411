"""The pieces that the networks are made of."""

from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.nn.rows import Rows


@final
class RowsLinear(nn.Module):
    """A first layer: an affine map of dense or sparse rows.

    Its weight lies as (features, outputs), so that a sparse row sums contiguous vectors.

    Parameters
    ----------
    n_features, n_outputs
        Widths.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> RowsLinear(3, 2)(DenseRows(torch.zeros(5, 3))).shape
    torch.Size([5, 2])
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.weight = uniform_parameter((n_features, n_outputs), n_features)
        self.bias = uniform_parameter((n_outputs,), n_features)

    def forward(self, rows: Rows) -> Float[Tensor, "rows outputs"]:
        """Map a batch of rows."""
        check_columns(rows, len(self.weight))
        return rows.affine(self.weight, self.bias)


def perceptron(widths: Sequence[int], *, after_hidden: bool = False) -> nn.Sequential:
    """Chain linear layers with ReLU between them.

    Parameters
    ----------
    widths
        Input, hidden and output widths.
    after_hidden
        Whether the input is a hidden layer still to be rectified, so that the chain begins with a ReLU.

    Examples
    --------
    >>> perceptron((2, 8, 1))
    Sequential(
      (0): Linear(in_features=2, out_features=8, bias=True)
      (1): ReLU(inplace=True)
      (2): Linear(in_features=8, out_features=1, bias=True)
    )
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        if layers or after_hidden:
            layers.append(nn.ReLU(inplace=True))
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


def uniform_parameter(shape: tuple[int, ...], fan_in: int) -> nn.Parameter:
    """Draw a weight or bias as `torch.nn.Linear` does: uniform within 1 / sqrt(number of inputs)."""
    bound = 1.0 / max(1, fan_in) ** 0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def check_columns(rows: Rows, n_features: int) -> None:
    """Raise a `ValueError` if a batch does not have the features that a network was made for."""
    if rows.shape[1] != n_features:
        raise ValueError(f"these rows have {rows.shape[1]} columns, but the network was made for {n_features}")


def check_widths(name: str, widths: Sequence[int]) -> tuple[int, ...]:
    """Give layer widths as a tuple of positive integers, or say what is wrong with them."""
    widths = tuple(widths)
    if any(not isinstance(width, int) or width < 1 for width in widths):
        raise ValueError(f"{name} must hold positive integers (layer widths), got {widths}")
    return widths
