"""The paper's pair network: both vertices' features through a perceptron, made symmetric."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from corrvae.nn.kernels import sums
from corrvae.nn.layers import check_columns, check_widths, perceptron, uniform_parameter
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.rows import Rows


@final
class PairPerceptron(PairNetwork):
    """Both vertices' features -> hidden layers (ReLU) -> a, averaged over the two orders of the vertices.

    The first layer is linear in [x_i; x_j], so its halves A x and B x + b are computed once for each vertex. The last
    layer is linear too, so the two orders are averaged before its product. What remains for each pair is one hidden
    vector and one product, where the concatenated form needs two products of both layers.

    Parameters
    ----------
    n_features, n_components
        Number of features of one vertex; latent dimension.
    hidden
        Widths of the hidden layers.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> network = PairPerceptron(20, 4, hidden=(8,))
    >>> prepared = network.prepare(DenseRows(torch.rand(3, 20)))
    >>> i, j = torch.tensor([0, 0]), torch.tensor([1, 2])
    >>> network.pre_activation(prepared, i, j).equal(network.pre_activation(prepared, j, i))
    True
    """

    def __init__(self, n_features: int, n_components: int, *, hidden: Sequence[int] = (1000,)) -> None:
        super().__init__()
        widths = check_widths("hidden", hidden)
        if not widths:
            raise ValueError("a pair perceptron needs at least one hidden layer; hidden is empty")
        self.n_components = n_components
        self.weight = uniform_parameter((n_features, 2 * widths[0]), 2 * n_features)
        self.bias = uniform_parameter((widths[0],), 2 * n_features)
        self.middle = perceptron(widths, after_hidden=True)
        self.last = nn.Linear(widths[-1], n_components)

    def prepare(self, rows: Rows) -> Float[Tensor, "vertices width"]:
        """Give [A x, B x + b] for each vertex."""
        check_columns(rows, len(self.weight))
        return rows.affine(self.weight, torch.cat([torch.zeros_like(self.bias), self.bias]))

    @property
    def products_a_pair(self) -> int:
        """Those of the layers after the first, of which the last serves both orders at once."""
        return 2 * sum(parameter.numel() for parameter in self.middle.parameters()) + self.last.weight.numel()

    def pre_activation(
        self,
        prepared: Float[Tensor, "vertices width"],
        first: Int[Tensor, " pairs"],
        second: Int[Tensor, " pairs"],
    ) -> Float[Tensor, "pairs dim"]:
        """Give a for the pairs (first, second) of positions in `prepared`."""
        # As a table of 2n rows, row 2i holds A x_i and row 2i + 1 holds B x_i + b.
        table = prepared.reshape(2 * len(prepared), -1)
        if len(self.middle) == 0:
            both = symmetric_hidden(table, first, second)
        else:
            there = self.middle(table[2 * first] + table[2 * second + 1]).relu()
            back = self.middle(table[2 * second] + table[2 * first + 1]).relu()
            both = there + back
        return linear(both, 0.5 * self.last.weight, self.last.bias)


def symmetric_hidden(
    table: Float[Tensor, "halves width"], first: Int[Tensor, " pairs"], second: Int[Tensor, " pairs"]
) -> Float[Tensor, "pairs width"]:
    """relu(A_i + B_j) + relu(A_j + B_i) for each pair, where rows 2i and 2i + 1 of the table hold A_i and B_i.

    Examples
    --------
    >>> table = torch.tensor([[1.0], [2.0], [-5.0], [3.0]])
    >>> symmetric_hidden(table, torch.tensor([0]), torch.tensor([1]))
    tensor([[4.]])
    """
    if table.device.type == "cpu":
        pairs = first.contiguous(), second.contiguous()
        return _SymmetricHidden.apply(table, *pairs)  # pyright: ignore[reportReturnType]
    there = table.index_select(0, 2 * first) + table.index_select(0, 2 * second + 1)
    back = table.index_select(0, 2 * second) + table.index_select(0, 2 * first + 1)
    return there.relu() + back.relu()


class _SymmetricHidden(torch.autograd.Function):
    """The sums before the ReLU are formed again on the way back: that costs less than keeping them."""

    @staticmethod
    def forward(ctx, table: Tensor, first: Tensor, second: Tensor) -> Tensor:
        ctx.save_for_backward(table, first, second)
        hidden = table.new_empty(len(first), table.shape[1])
        sums.symmetric_hidden(*(part.numpy() for part in (table, first, second, hidden)))
        return hidden

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None]:
        table, first, second = ctx.saved_tensors
        into, gradient = torch.zeros_like(table), gradients[0].contiguous()
        sums.symmetric_hidden_gradient(*(part.numpy() for part in (table.detach(), first, second, gradient, into)))
        return into, None, None
