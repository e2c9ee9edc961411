"""A pair network that costs a few hundred operations for each pair."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.nn.layers import RowsLinear, check_widths, perceptron
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.rows import Rows


@final
class PairBilinear(PairNetwork):
    """In each latent dimension the inner product of two short vectors, one for each vertex.

    A small perceptron gives each vertex two vectors u and v for each latent dimension; a = (u_i . v_j + u_j . v_i) / 2,
    plus a learned constant. The network holds them as p = (u + v) / 2 and q = (u - v) / 2, for which the same number is
    p_i . p_j - q_i . q_j: symmetric as it stands, and any symmetric form of rank `rank` in each sign.

    Parameters
    ----------
    n_features, n_components
        Number of features of one vertex; latent dimension.
    rank
        Length of the short vectors.
    hidden
        Widths of the hidden layers between features and vectors; empty for vectors linear in the features.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> network = PairBilinear(20, 4)
    >>> prepared = network.prepare(DenseRows(torch.rand(3, 20)))
    >>> network.block(prepared[:1], prepared).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, n_features: int, n_components: int, *, rank: int = 4, hidden: Sequence[int] = (300,)) -> None:
        super().__init__()
        if rank < 1:
            raise ValueError(f"rank must be positive, got {rank}")
        self.n_components = n_components
        self.rank = rank
        widths = (*check_widths("hidden", hidden), n_components * 2 * rank)
        self.first = RowsLinear(n_features, widths[0])
        self.rest = perceptron(widths, after_hidden=True)
        self.constant = nn.Parameter(torch.zeros(n_components))

    def prepare(self, rows: Rows) -> Float[Tensor, "vertices width"]:
        """Give each vertex's vectors [p, q] of every latent dimension, one dimension after another."""
        return self.rest(self.first(rows))

    def pre_activation(
        self,
        prepared: Float[Tensor, "vertices width"],
        first: Int[Tensor, " pairs"],
        second: Int[Tensor, " pairs"],
    ) -> Float[Tensor, "pairs dim"]:
        """Give a for the pairs (first, second) of positions in `prepared`."""
        products = (prepared.index_select(0, first) * prepared.index_select(0, second)).view(
            len(first), self.n_components, 2, self.rank
        )
        positive, negative = products.sum(-1).unbind(-1)
        return positive - negative + self.constant

    def block(
        self, prepared_i: Float[Tensor, "rows width"], prepared_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Give a for every row against every row: one small matrix product for each latent dimension."""
        signs = torch.ones(2, self.rank, dtype=prepared_i.dtype, device=prepared_i.device)
        signs[1] = -1.0
        shape = (self.n_components, 2 * self.rank)
        left = (prepared_i.view(-1, *shape) * signs.view(-1)).transpose(0, 1)
        right = prepared_j.view(-1, *shape).permute(1, 2, 0)
        return torch.matmul(left, right).permute(1, 2, 0) + self.constant
