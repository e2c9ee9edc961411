"""Pair networks: the features of two vertices to the correlation of their latent points."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from corrvae.nn.layers import RowsLinear, check_widths, perceptron, uniform_parameter
from corrvae.nn.rows import Rows

Prepared = Float[Tensor, "vertices width"]
Positions = Int[Tensor, " pairs"]
Pairs = Float[Tensor, "pairs dim"]

# Hidden entries of `PairPerceptron` computed together: 2 MB in float32, the size of a second-level cache. 256 to 768
# pairs of width 1,000 were equally fast, 2,272 pairs at once 15 % slower.
_TILE_ENTRIES = 1 << 19


class PairNetwork(nn.Module, ABC):
    """Correlation of q(z_i, z_j given x_i, x_j) in each latent dimension, symmetric in i and j.

    A network works in two steps: `prepare` turns the features of each vertex into a vector, once for each vertex;
    `pre_activation` combines two such vectors into a. The correlation is rho = tanh(a). Callers receive a and not rho,
    because 1 - rho cannot be recovered from a rho that was rounded to 1.

    With `reads_means`, `prepare` receives the encoder's means in place of the features; the gradient then reaches the
    encoder.
    """

    n_components: int
    reads_means: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, rows: Rows) -> Prepared:
        """Return the vector of each vertex."""

    @abstractmethod
    def pre_activation(self, prepared: Prepared, first: Positions, second: Positions) -> Pairs:
        """Return a for the pairs (first, second) of positions in `prepared`."""

    def block(
        self, prepared_i: Float[Tensor, "rows width"], prepared_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Return a for every vertex of one set against every vertex of another."""
        n_rows, n_columns = len(prepared_i), len(prepared_j)
        device = prepared_i.device
        first = torch.arange(n_rows, device=device).repeat_interleave(n_columns)
        second = torch.arange(n_rows, n_rows + n_columns, device=device).repeat(n_rows)
        pairs = self.pre_activation(torch.cat([prepared_i, prepared_j]), first, second)
        return pairs.view(n_rows, n_columns, self.n_components)


@final
class PairPerceptron(PairNetwork):
    """The paper's network: features of both vertices -> hidden layers (ReLU) -> a, averaged over the two orders.

    The first layer is linear, W [x_i; x_j] = A x_i + B x_j, so that A x and B x + b are computed once for each vertex.
    The last layer is linear too, so the two orders are averaged before its product. With one hidden layer,
    a = V (relu(A x_i + B x_j + b) + relu(A x_j + B x_i + b)) / 2 + c.
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

    def prepare(self, rows: Rows) -> Prepared:
        """Return [A x, B x + b] for each vertex."""
        return rows.affine(self.weight, torch.cat([torch.zeros_like(self.bias), self.bias]))

    def pre_activation(self, prepared: Prepared, first: Positions, second: Positions) -> Pairs:
        """Return a for the pairs (first, second) of positions in `prepared`."""
        weight, bias = 0.5 * self.last.weight, self.last.bias
        if len(self.middle) == 0 and prepared.is_cpu:
            return _SymmetricLayer.apply(prepared, weight, first, second) + bias  # pyright: ignore
        a, b = prepared.chunk(2, dim=1)
        there = self.middle(a.index_select(0, first) + b.index_select(0, second))
        back = self.middle(a.index_select(0, second) + b.index_select(0, first))
        return linear(there.relu() + back.relu(), weight, bias)


class _SymmetricLayer(torch.autograd.Function):
    """(relu(A_i + B_j) + relu(A_j + B_i)) W' for each pair, some pairs at a time.

    The hidden vectors are never all in memory, and the backward pass computes them again: they stay in the cache, and
    the memory of a large batch of pairs does not grow with the hidden width.
    """

    @staticmethod
    def forward(ctx, prepared: Tensor, weight: Tensor, first: Tensor, second: Tensor) -> Tensor:
        from corrvae.nn.pair_kernels import symmetric_hidden

        prepared, first, second = prepared.contiguous(), first.contiguous(), second.contiguous()
        ctx.save_for_backward(prepared, weight, first, second)
        outputs = prepared.new_empty(len(first), len(weight))
        tile = _tile(weight)
        hidden = prepared.new_empty(min(tile, len(first)), weight.shape[1])
        for i, j, output in zip(first.split(tile), second.split(tile), outputs.split(tile), strict=True):
            symmetric_hidden(prepared.numpy(), i.numpy(), j.numpy(), hidden.numpy())
            torch.mm(hidden[: len(i)], weight.t(), out=output)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:  # pyright: ignore
        from corrvae.nn.pair_kernels import symmetric_hidden, symmetric_hidden_backward

        prepared, weight, first, second = ctx.saved_tensors
        of_prepared, of_weight = torch.zeros_like(prepared), torch.zeros_like(weight)
        tile = _tile(weight)
        hidden = prepared.new_empty(min(tile, len(first)), weight.shape[1])
        of_hidden = torch.empty_like(hidden)
        for i, j, gradient in zip(first.split(tile), second.split(tile), gradients[0].split(tile), strict=True):
            pairs = slice(len(i))
            symmetric_hidden(prepared.numpy(), i.numpy(), j.numpy(), hidden.numpy())
            of_weight.addmm_(gradient.t(), hidden[pairs])
            torch.mm(gradient, weight, out=of_hidden[pairs])
            symmetric_hidden_backward(prepared.numpy(), i.numpy(), j.numpy(), of_hidden.numpy(), of_prepared.numpy())
        return of_prepared, of_weight, None, None


def _tile(weight: Tensor) -> int:
    """Return how many hidden vectors are computed together."""
    return max(1, _TILE_ENTRIES // weight.shape[1])


@final
class PairBilinear(PairNetwork):
    """In each latent dimension the inner product of two short vectors, one for each vertex.

    A small perceptron returns two vectors u and v for each vertex and dimension; a = (u_i . v_j + u_j . v_i) / 2 plus a
    learned constant. They are held as p = (u + v) / 2 and q = (u - v) / 2, which gives the same
    a = p_i . p_j - q_i . q_j, symmetric as it stands. A pair costs a few hundred operations.

    The vectors have length `rank`; without `hidden` layers they are linear in the features.
    """

    def __init__(self, n_features: int, n_components: int, *, rank: int = 4, hidden: Sequence[int] = (300,)) -> None:
        super().__init__()
        self.n_components = n_components
        self.rank = rank
        widths = (*check_widths("hidden", hidden), 2 * rank * n_components)
        self.first = RowsLinear(n_features, widths[0])
        self.rest = perceptron(widths, after_hidden=True)
        self.constant = nn.Parameter(torch.zeros(n_components))

    def prepare(self, rows: Rows) -> Prepared:
        """Return p and then q of each vertex, (2 rank, dim) entries."""
        return self.rest(self.first(rows))

    def pre_activation(self, prepared: Prepared, first: Positions, second: Positions) -> Pairs:
        """Return a for the pairs (first, second) of positions in `prepared`."""
        products = prepared.index_select(0, first) * prepared.index_select(0, second)
        p, q = products.view(len(first), 2, self.rank, self.n_components).sum(2).unbind(1)
        return p - q + self.constant

    def block(
        self, prepared_i: Float[Tensor, "rows width"], prepared_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Return a for every vertex of one set against every vertex of another: a small product for each dimension."""
        shape = -1, 2 * self.rank, self.n_components
        signs = torch.ones(2 * self.rank, 1, dtype=prepared_i.dtype, device=prepared_i.device)
        signs[self.rank :] = -1.0
        # contiguous for each dimension, or bmm falls back to one small call after another
        left = (prepared_i.reshape(shape) * signs).permute(2, 0, 1).contiguous()
        right = prepared_j.reshape(shape).permute(2, 1, 0).contiguous()
        return torch.bmm(left, right).permute(1, 2, 0) + self.constant


@final
class PairMetric(PairNetwork):
    """A correlation that falls with the distance of the two points' means, in a learned metric.

    a_k = b_k - c_k |v_i - v_j|^2 with a learned b_k and a positive c_k for each latent dimension k, where v is a
    learned image of the mean (linear unless there are hidden layers). The network has few weights and shares the
    encoder's, so it does not memorise edges. It generalises best where edges are few.
    """

    reads_means: ClassVar[bool] = True

    def __init__(self, n_features: int, n_components: int, *, hidden: Sequence[int] = ()) -> None:
        super().__init__()
        self.n_components = n_components
        if hidden:
            self.image = perceptron((n_components, *check_widths("hidden", hidden), n_components))
        else:
            self.image = nn.Linear(n_components, n_components, bias=False)  # differences do not depend on a bias
            self.image.weight = nn.Parameter(3.0 * torch.eye(n_components))
        # Latent points of one standard deviation are a squared distance of about 1 apart in each dimension.
        self.start = nn.Parameter(torch.full((n_components,), 1.0))
        self.slope = nn.Parameter(torch.full((n_components,), 0.05).log())

    def prepare(self, rows: Rows) -> Prepared:
        """Return the image of each mean."""
        return self.image(rows.dense())

    def pre_activation(self, prepared: Prepared, first: Positions, second: Positions) -> Pairs:
        """Return a for the pairs (first, second) of positions in `prepared`."""
        difference = prepared.index_select(0, first) - prepared.index_select(0, second)
        return self.start - self.slope.exp() * difference.square().sum(1, keepdim=True)


PAIR_NETWORKS: dict[str, type[PairNetwork]] = {
    "perceptron": PairPerceptron,
    "bilinear": PairBilinear,
    "metric": PairMetric,
}
"""Pair networks by name; a new one is a class and a line here."""
