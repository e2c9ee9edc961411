import pytest
import torch

from corrvae.nn import DenseRows, PairMetric, PairNetwork


def setup(hidden=()):
    torch.manual_seed(0)
    network = PairMetric(6, 3, hidden=hidden).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    return network, torch.randn(7, 3, dtype=torch.float64)


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_it_falls_with_the_squared_distance_of_the_images(hidden):
    network, means = setup(hidden)
    images = network.image(means)
    expected = torch.cdist(images, images)[..., None].square() * -network.slope.exp() + network.start
    i, j = (index.reshape(-1) for index in torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij"))
    found = network.pre_activation(network.prepare(DenseRows(means)), i, j).view(7, 7, 3)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert found.equal(found.transpose(0, 1))
    assert (found <= network.start).all()


def test_it_begins_as_the_distance_of_the_means():
    network, means = PairMetric(6, 3), torch.randn(4, 3)
    found = network.pre_activation(network.prepare(DenseRows(means)), torch.tensor([0]), torch.tensor([1]))
    expected = 1.0 - 0.05 * 9.0 * (means[0] - means[1]).square().sum()
    torch.testing.assert_close(found, expected.expand(1, 3))


def test_block_agrees_with_pairs():
    network, means = setup()
    prepared = network.prepare(DenseRows(means))
    torch.testing.assert_close(
        network.block(prepared[:3], prepared[2:]), PairNetwork.block(network, prepared[:3], prepared[2:])
    )


def test_its_derivative_reaches_the_means():
    network, means = setup()
    first, second = torch.tensor([0, 1, 4]), torch.tensor([1, 0, 3])

    def of_means(means):
        return network.pre_activation(network.prepare(DenseRows(means)), first, second)

    assert torch.autograd.gradcheck(of_means, means.requires_grad_())


def test_only_means_are_read():
    network, _ = setup()
    with pytest.raises(ValueError, match="have 6 columns, but the network was made for 3"):
        network.prepare(DenseRows(torch.zeros(2, 6, dtype=torch.float64)))
