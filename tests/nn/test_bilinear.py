import pytest
import torch

from corrvae.nn import DenseRows, PairBilinear, PairNetwork
from corrvae.nn.bilinear import signed_products


def setup(hidden=(5,)):
    torch.manual_seed(0)
    network = PairBilinear(6, 3, rank=2, hidden=hidden).double()
    torch.nn.init.normal_(network.constant)
    return network, network.prepare(DenseRows(torch.randn(7, 6, dtype=torch.float64)))


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_it_is_the_symmetrised_inner_product_of_two_vectors(hidden):
    network, prepared = setup(hidden)
    p, q = prepared.view(7, 2, 2, 3).unbind(1)
    u, v = p + q, p - q
    expected = torch.einsum("irk,jrk->ijk", u, v)
    expected = (expected + expected.transpose(0, 1)) / 2 + network.constant
    i, j = (index.reshape(-1) for index in torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij"))
    found = network.pre_activation(prepared, i, j).view(7, 7, 3)
    torch.testing.assert_close(found, expected)
    assert found.equal(found.transpose(0, 1))


def test_block_agrees_with_pairs():
    network, prepared = setup()
    torch.testing.assert_close(
        network.block(prepared[:3], prepared[2:]), PairNetwork.block(network, prepared[:3], prepared[2:])
    )


def test_gradients():
    torch.manual_seed(0)
    rows = torch.randn(5, 12, dtype=torch.float64, requires_grad=True)
    first, second = torch.tensor([0, 1, 4, 2]), torch.tensor([1, 0, 4, 3])
    assert torch.autograd.gradcheck(lambda r: signed_products(r, first, second, 2), rows)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="rank must be positive"):
        PairBilinear(6, 3, rank=0)
