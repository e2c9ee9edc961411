"""A pair network that costs a few hundred operations for each pair."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.nn.kernels import sums
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
        """Give each vertex's vectors [p, q], each entry for all latent dimensions side by side."""
        return self.rest(self.first(rows))

    @property
    def products_a_pair(self) -> int:
        """Those of the short vectors."""
        return 2 * self.rank * self.n_components

    def pre_activation(
        self,
        prepared: Float[Tensor, "vertices width"],
        first: Int[Tensor, " pairs"],
        second: Int[Tensor, " pairs"],
    ) -> Float[Tensor, "pairs dim"]:
        """Give a for the pairs (first, second) of positions in `prepared`."""
        return signed_products(prepared, first, second, self.rank) + self.constant

    def block(
        self, prepared_i: Float[Tensor, "rows width"], prepared_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Give a for every row against every row: one small matrix product for each latent dimension."""
        shape = -1, 2 * self.rank, self.n_components
        # Contiguous for each dimension, or the product would fall back to one small call after another.
        left, right = (part.reshape(shape).permute(2, 0, 1).contiguous() for part in (prepared_i, prepared_j))
        signs = torch.ones(2 * self.rank, dtype=prepared_i.dtype, device=prepared_i.device)
        signs[self.rank :] = -1.0
        return torch.bmm(left * signs, right.transpose(1, 2)).permute(1, 2, 0) + self.constant


def signed_products(
    rows: Float[Tensor, "vertices width"], first: Int[Tensor, " pairs"], second: Int[Tensor, " pairs"], rank: int
) -> Float[Tensor, "pairs dim"]:
    """p_i . p_j - q_i . q_j in each dimension, for rows that hold `rank` entries of p and then of q.

    Each entry lies there for all dimensions side by side.

    Examples
    --------
    >>> signed_products(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0]), torch.tensor([1]), 1)
    tensor([[-5.]])
    """
    if rows.device.type == "cpu":
        pairs = first.contiguous(), second.contiguous()
        return _SignedProducts.apply(rows, *pairs, rank)  # pyright: ignore[reportReturnType]
    products = (rows.index_select(0, first) * rows.index_select(0, second)).view(len(first), 2 * rank, -1)
    return products[:, :rank].sum(1) - products[:, rank:].sum(1)


class _SignedProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, first: Tensor, second: Tensor, rank: int) -> Tensor:
        rows = rows.contiguous()
        ctx.save_for_backward(rows, first, second)
        ctx.rank = rank
        values = rows.new_zeros(len(first), rows.shape[1] // (2 * rank))
        sums.signed_products(rows.numpy(), first.numpy(), second.numpy(), rank, values.numpy())
        return values

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        rows, first, second = ctx.saved_tensors
        into, gradient = torch.zeros_like(rows), gradients[0].contiguous()
        pairs = first.numpy(), second.numpy()
        sums.signed_products_gradient(rows.numpy(), *pairs, ctx.rank, gradient.numpy(), into.numpy())
        return into, None, None, None
