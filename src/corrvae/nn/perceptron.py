"""The paper's pair network: both vertices' features through a perceptron, made symmetric."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from corrvae.nn.layers import check_columns, check_widths, perceptron, uniform_parameter
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.rows import Rows

# Pairs handled at a time, so that their hidden vectors stay in a core's cache between one operation and the next.
_BLOCK = 512


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
            both = _SymmetricHidden.apply(table, first, second)
        else:
            there = self.middle(table[2 * first] + table[2 * second + 1]).relu()
            back = self.middle(table[2 * second] + table[2 * first + 1]).relu()
            both = there + back
        return linear(both, 0.5 * self.last.weight, self.last.bias)  # pyright: ignore[reportArgumentType]


class _SymmetricHidden(torch.autograd.Function):
    """relu(A_i + B_j) + relu(A_j + B_i) for each pair, in blocks.

    The sums before the ReLU are formed again on the way back rather than kept: gathering them costs less than the
    memory.
    """

    @staticmethod
    def forward(ctx, table: Tensor, first: Tensor, second: Tensor) -> Tensor:
        ctx.save_for_backward(table, first, second)
        hidden = table.new_empty(len(first), table.shape[1])
        for begin in range(0, len(first), _BLOCK):
            i, j = first[begin : begin + _BLOCK], second[begin : begin + _BLOCK]
            there, back = _sums(table, i, j).relu_(), _sums(table, j, i).relu_()
            torch.add(there, back, out=hidden[begin : begin + _BLOCK])
        return hidden

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        table, first, second = ctx.saved_tensors
        into = torch.zeros_like(table)
        for begin in range(0, len(first), _BLOCK):
            i, j = first[begin : begin + _BLOCK], second[begin : begin + _BLOCK]
            block = gradient[begin : begin + _BLOCK]
            for a, b in ((i, j), (j, i)):
                passed = torch.ops.aten.threshold_backward(block, _sums(table, a, b), 0.0)
                into.index_add_(0, 2 * a, passed).index_add_(0, 2 * b + 1, passed)
        return into, None, None


def _sums(table: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return table.index_select(0, 2 * first).add_(table.index_select(0, 2 * second + 1))
