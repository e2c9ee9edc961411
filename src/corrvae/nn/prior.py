"""The pair prior's correlation tau as something to learn."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

# A learned tau keeps this distance from -1 and 1, where the pair prior degenerates.
_MARGIN = 1e-6


@final
class LearnedTau(nn.Module):
    """A tau in (-1, 1) that training adjusts: one for all latent dimensions, or one for each.

    Parameters
    ----------
    start
        Where it begins.
    n_components
        Number of latent dimensions for one tau each; ``None`` for one shared by all.

    Examples
    --------
    >>> LearnedTau(0.99)()
    tensor(0.9900, dtype=torch.float64, grad_fn=<MulBackward0>)
    """

    def __init__(self, start: float = 0.99, *, n_components: int | None = None) -> None:
        super().__init__()
        if not abs(start) < 1.0 - _MARGIN:
            raise ValueError(f"a learned tau must start inside (-1, 1), at least {_MARGIN} from its ends; got {start}")
        shape = () if n_components is None else (n_components,)
        self.raw = nn.Parameter(torch.full(shape, start / (1.0 - _MARGIN), dtype=torch.float64).atanh().float())

    def forward(self) -> Float[Tensor, "..."]:
        """Give tau, in float64: 1 - tau must keep its digits."""
        return (1.0 - _MARGIN) * self.raw.double().tanh()
