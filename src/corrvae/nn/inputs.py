"""What happens to features before a network reads them."""

from typing import Literal, final

import torch
from torch import Tensor, nn

from corrvae.nn.rows import Rows

Normalization = Literal["raw", "binary", "l2", "log1p"]


@final
class InputTransform(nn.Module):
    """Normalise rows, and drop entries at random while training.

    Parameters
    ----------
    normalize
        ``"raw"`` leaves entries as they are; ``"binary"`` keeps only whether they are zero; ``"l2"`` scales each row to
        length 1 (a row of zeros stays one); ``"log1p"`` takes sign(x) log(1 + |x|).
    dropout
        Share of entries dropped in training mode; the others are scaled up to keep the mean.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> InputTransform("l2")(DenseRows(torch.tensor([[3.0, 4.0]]))).dense()
    tensor([[0.6000, 0.8000]])
    """

    def __init__(self, normalize: Normalization = "raw", *, dropout: float = 0.0) -> None:
        super().__init__()
        if normalize not in NORMALIZATIONS:
            raise ValueError(f"normalize must be one of {sorted(NORMALIZATIONS)}, got {normalize!r}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        self.normalize = normalize
        self.dropout = dropout

    def forward(self, rows: Rows, generator: torch.Generator | None = None) -> Rows:
        """Transform a batch; `generator` draws what is dropped."""
        rows = NORMALIZATIONS[self.normalize](rows)
        if not self.training or self.dropout == 0.0:
            return rows
        # An entry that is zero stays zero whether it is dropped or not, so only stored ones need a draw.
        return rows.map(lambda values: values * _keep(values, self.dropout, generator))


def _keep(values: Tensor, dropout: float, generator: torch.Generator | None) -> Tensor:
    draws = torch.rand(values.shape, generator=generator, dtype=values.dtype, device=values.device)
    return (draws >= dropout).to(values.dtype) / (1.0 - dropout)


def _binary(rows: Rows) -> Rows:
    return rows.map(lambda values: (values != 0).to(values.dtype))


def _unit_length(rows: Rows) -> Rows:
    lengths = rows.sums(torch.square).sqrt()
    return rows.scale(torch.where(lengths > 0, 1.0 / lengths, 0.0))


def _signed_log1p(rows: Rows) -> Rows:
    return rows.map(lambda values: values.sign() * values.abs().log1p())


NORMALIZATIONS = {"raw": lambda rows: rows, "binary": _binary, "l2": _unit_length, "log1p": _signed_log1p}
