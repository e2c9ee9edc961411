import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.nn import DenseRows, PairBilinear, PairMetric, PairNetwork, PairPerceptron, Rows


class Product(PairNetwork):
    """A network of a user's own: the product of both features."""

    n_components = 2

    def prepare(self, rows: Rows) -> Float[Tensor, "vertices width"]:
        return rows.dense()

    def pre_activation(
        self, prepared: Float[Tensor, "vertices width"], first: Int[Tensor, " pairs"], second: Int[Tensor, " pairs"]
    ) -> Float[Tensor, "pairs dim"]:
        return prepared[first] * prepared[second]


def test_a_block_holds_every_row_against_every_row():
    x, y = torch.randn(3, 2), torch.randn(4, 2)
    network = Product()
    block = network.block(network.prepare(DenseRows(x)), network.prepare(DenseRows(y)))
    torch.testing.assert_close(block, x[:, None] * y[None])


def test_pairs_within_a_set():
    x = torch.randn(4, 2)
    expected = torch.stack([x[i] * x[j] for i in range(4) for j in range(i + 1, 4)])
    torch.testing.assert_close(Product().within(x), expected)


def test_multiplications_for_each_pair():
    assert PairPerceptron(7, 3, hidden=(5,)).products_a_pair == 5 * 3
    assert PairPerceptron(7, 3, hidden=(5, 4)).products_a_pair == 2 * (5 * 4 + 4) + 4 * 3  # the middle in both orders
    assert PairBilinear(7, 3, rank=4).products_a_pair == 4 * 2 * 3
    assert PairMetric(7, 3).products_a_pair < PairBilinear(7, 3).products_a_pair
    own = Product()
    own.weight = torch.nn.Parameter(torch.ones(11, 2))
    assert own.products_a_pair == 22
