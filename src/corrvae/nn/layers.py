"""Building blocks of the networks: input transform, first layer, perceptrons."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.nn.rows import Rows


@final
class RowsLinear(nn.Module):
    """First layer: an affine map of dense or sparse rows.

    The weight has the shape (features, outputs), so that a sparse row sums contiguous vectors.
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.weight = uniform_parameter((n_features, n_outputs), n_features)
        self.bias = uniform_parameter((n_outputs,), n_features)

    def forward(self, rows: Rows) -> Float[Tensor, "rows outputs"]:
        """Map a batch of rows."""
        return rows.affine(self.weight, self.bias)


def perceptron(widths: Sequence[int], *, after_hidden: bool = False) -> nn.Sequential:
    """Return linear layers with ReLU between them; with `after_hidden` the network begins with a ReLU."""
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


def check_widths(name: str, widths: Sequence[int]) -> tuple[int, ...]:
    """Return layer widths as a tuple; raise a `ValueError` if one is not a positive integer."""
    widths = tuple(widths)
    if any(not isinstance(width, int) or width < 1 for width in widths):
        raise ValueError(f"{name} must hold positive integers (layer widths), got {widths}")
    return widths


def _binary(rows: Rows) -> Rows:
    return rows.map(lambda values: (values != 0).to(values.dtype))


def _unit_length(rows: Rows) -> Rows:
    lengths = rows.sums(torch.square).sqrt()
    return rows.scale(torch.where(lengths > 0, 1.0 / lengths, 0.0))


def _signed_log1p(rows: Rows) -> Rows:
    return rows.map(lambda values: values.sign() * values.abs().log1p())


NORMALIZATIONS: dict[str, Callable[[Rows], Rows]] = {
    "none": lambda rows: rows,
    "binary": _binary,
    "l2": _unit_length,
    "log1p": _signed_log1p,
}
"""What `InputTransform` can do to each row, by name."""


@final
class InputTransform(nn.Module):
    """Normalise rows, and while training drop a share of the entries at random, scaling up the others to keep the mean.

    ``"binary"`` replaces non-zeros by 1; ``"l2"`` scales each row to length 1 (a row of zeros stays zero); ``"log1p"``
    takes sign(x) log(1 + |x|). With `masking` a row is cut in two before: what is read, and what is explained.
    """

    def __init__(self, normalize: str = "none", *, dropout: float = 0.0, masking: float = 0.0) -> None:
        super().__init__()
        if normalize not in NORMALIZATIONS:
            raise ValueError(f"normalize must be one of {sorted(NORMALIZATIONS)}, got {normalize!r}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        self.normalize = normalize
        self.dropout = dropout
        self.masking = masking

    def split(self, rows: Rows, generator: torch.Generator | None = None) -> tuple[Rows, Rows]:
        """Return what the encoder reads of a batch, and what the decoder explains: the same rows, but for `masking`.

        Each row draws a share below `masking`, and hides its stored entries with that probability. Those that are read
        are missing from what is explained.
        """
        if self.masking == 0.0:
            return self(rows, generator), rows
        kind = {"dtype": rows.values.dtype, "device": rows.values.device}
        shares = self.masking * torch.rand(rows.shape[0], generator=generator, **kind)
        hidden = torch.rand(rows.values.shape, generator=generator, **kind) < rows.spread(shares)
        explained = hidden if rows.observed is None else hidden & rows.observed
        target = replace(rows, values=rows.values * explained.to(rows.values.dtype), observed=explained)
        return self(rows.map(lambda values: values.masked_fill(hidden, 0.0)), generator), target

    def forward(self, rows: Rows, generator: torch.Generator | None = None) -> Rows:
        """Transform a batch; `generator` draws which entries are dropped."""
        rows = NORMALIZATIONS[self.normalize](rows)
        if not self.training or self.dropout == 0.0:
            return rows
        # A zero stays zero whether it is dropped or not, so only stored entries need a draw.
        shape, kind = rows.values.shape, {"dtype": rows.values.dtype, "device": rows.values.device}
        kept = torch.rand(shape, generator=generator, **kind) >= self.dropout
        return rows.map(lambda values: values * (kept.to(values.dtype) / (1.0 - self.dropout)))
