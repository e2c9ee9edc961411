"""The generative network: a latent point to the parameters of its features' likelihood."""

from collections.abc import Sequence
from typing import final

from jaxtyping import Float
from torch import Tensor, nn

from corrvae.nn.chains import apply_chain, parameters_of
from corrvae.nn.layers import check_widths, perceptron


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
    >>> import torch
    >>> Decoder(4, 20)(torch.zeros(3, 4)).shape
    torch.Size([3, 20])
    """

    def __init__(self, n_components: int, n_features: int, *, hidden: Sequence[int] = (300,)) -> None:
        super().__init__()
        self.layers = perceptron((n_components, *check_widths("hidden", hidden), n_features))

    def forward(self, z: Float[Tensor, "*points dim"]) -> Float[Tensor, "*points features"]:
        """Decode latent points."""
        outputs = apply_chain(z.reshape(-1, z.shape[-1]), self.chain)
        return outputs.view(*z.shape[:-1], -1)

    @property
    def chain(self) -> list[Tensor]:
        """Weight and bias of each layer."""
        return parameters_of(self.layers)
