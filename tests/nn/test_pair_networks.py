import pytest
import torch
from torch.nn.functional import linear

from corrvae.nn import (
    PAIR_NETWORKS,
    DenseRows,
    PairMetric,
    PairNetwork,
    PairPerceptron,
    pair_networks,
)


class Product(PairNetwork):
    """A network of a user's own: the product of both features."""

    n_components = 2

    def prepare(self, rows):
        return rows.dense()

    def pre_activation(self, prepared, first, second):
        return prepared[first] * prepared[second]


def make(name, **options):
    """Return a network of 3 dimensions with random weights, and what it prepares of 7 vertices."""
    torch.manual_seed(0)
    network = PAIR_NETWORKS[name](6, 3, **options).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(7, 3 if network.reads_means else 6, dtype=torch.float64)
    return network, network.prepare(DenseRows(x))


def concatenated(network: PairPerceptron, x_i: torch.Tensor, x_j: torch.Tensor) -> torch.Tensor:
    """The perceptron as it is defined: all layers for [x_i; x_j] and for [x_j; x_i], outputs averaged."""
    weight = torch.cat(network.weight.chunk(2, 1))

    def apply(x: torch.Tensor) -> torch.Tensor:
        hidden = network.middle(x @ weight + network.bias).clamp(min=0)
        return linear(hidden, network.last.weight, network.last.bias)

    return (apply(torch.cat([x_i, x_j], 1)) + apply(torch.cat([x_j, x_i], 1))) / 2


@pytest.mark.parametrize("name", PAIR_NETWORKS)
@pytest.mark.parametrize("hidden", [None, (5,), (5, 4)])
def test_blocks_and_pairs_agree_and_are_symmetric(name, hidden):
    network, prepared = make(name, **({} if hidden is None else {"hidden": hidden}))
    i, j = (index.reshape(-1) for index in torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij"))
    pairs = network.pre_activation(prepared, i, j)
    assert pairs.equal(network.pre_activation(prepared, j, i))
    found = pairs.view(7, 7, 3)
    torch.testing.assert_close(network.block(prepared[:3], prepared[2:]), found[:3, 2:])
    torch.testing.assert_close(network.block(prepared[:0], prepared), found[:0])


@pytest.mark.parametrize("name", PAIR_NETWORKS)
def test_gradients(name):
    network, prepared = make(name, hidden=(5,))
    prepared, others = prepared[:5].detach().requires_grad_(), prepared[5:].detach().requires_grad_()
    first, second = torch.tensor([0, 1, 4, 2]), torch.tensor([1, 0, 4, 3])
    assert torch.autograd.gradcheck(lambda p: network.pre_activation(p, first, second), prepared)
    assert torch.autograd.gradcheck(network.block, (prepared, others))


def test_the_symmetric_layer_passes_gradcheck(monkeypatch):
    monkeypatch.setattr(pair_networks, "_TILE_ENTRIES", 12)  # two pairs at a time
    torch.manual_seed(0)
    prepared = torch.randn(5, 12, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    first, second = torch.tensor([0, 1, 4, 2, 0]), torch.tensor([1, 0, 4, 3, 3])
    assert torch.autograd.gradcheck(
        lambda p, w: pair_networks._SymmetricLayer.apply(p, w, first, second), (prepared, weight)
    )


@pytest.mark.parametrize("tile", [1, 40, 1 << 19])
@pytest.mark.parametrize("hidden", [(11,), (11, 5), (11, 5, 4)])
@pytest.mark.parametrize("n_pairs", [0, 1, 37])
def test_perceptron_and_its_gradients_equal_the_concatenated_form(hidden, n_pairs, tile, monkeypatch):
    monkeypatch.setattr(pair_networks, "_TILE_ENTRIES", tile)
    torch.manual_seed(1)
    network, x = PairPerceptron(6, 3, hidden=hidden).double(), torch.randn(9, 6, dtype=torch.float64)
    first, second = torch.randint(0, 9, (2, n_pairs))
    outer = torch.randn(n_pairs, 3, dtype=torch.float64)
    ours = network.pre_activation(network.prepare(DenseRows(x)), first, second)
    theirs = concatenated(network, x[first], x[second])
    torch.testing.assert_close(ours, theirs)
    parameters = list(network.parameters())
    gradients = [torch.autograd.grad((value * outer).sum(), parameters) for value in (ours, theirs)]
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("hidden", [(50,), (50, 20)])
def test_swapping_a_pair_changes_no_bit_in_single_precision(hidden):
    torch.manual_seed(2)
    network = PairPerceptron(6, 3, hidden=hidden)
    prepared = network.prepare(DenseRows(torch.randn(9, 6)))
    first, second = torch.randint(0, 9, (2, 40))
    there, back = network.pre_activation(prepared, first, second), network.pre_activation(prepared, second, first)
    assert there.equal(back)


def test_a_perceptron_elsewhere_computes_the_same():
    class Elsewhere(torch.Tensor):
        """A tensor that claims to be on another device."""

        is_cpu = False

    network, prepared = make("perceptron")
    moved = network.block(prepared.as_subclass(Elsewhere), prepared).as_subclass(torch.Tensor)
    torch.testing.assert_close(moved, network.block(prepared, prepared))


def test_perceptron_does_not_hide_what_is_not_a_number():
    network = PairPerceptron(2, 1, hidden=(2,))
    prepared = torch.tensor([[1.0, float("nan"), 2.0, 1.0], [-5.0, 1.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    found = network.pre_activation(prepared, torch.tensor([0, 1]), torch.tensor([1, 2]))
    assert found.isnan().tolist() == [[True], [False]]


def test_perceptron_parameters():
    assert PairPerceptron(6, 3).bias.shape == (1000,)
    with pytest.raises(ValueError, match="at least one hidden layer"):
        PairPerceptron(6, 3, hidden=())


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_bilinear_is_the_symmetrised_inner_product_of_two_vectors(hidden):
    network, prepared = make("bilinear", rank=2, hidden=hidden)
    p, q = prepared.view(7, 2, 2, 3).unbind(1)
    expected = torch.einsum("irk,jrk->ijk", p + q, p - q)
    expected = (expected + expected.transpose(0, 1)) / 2 + network.constant
    torch.testing.assert_close(network.block(prepared, prepared), expected)


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_metric_falls_with_the_squared_distance_of_the_images(hidden):
    network, prepared = make("metric", hidden=hidden)
    distance = (prepared[:, None] - prepared).square().sum(2, keepdim=True)
    torch.testing.assert_close(network.block(prepared, prepared), network.start - network.slope.exp() * distance)


def test_metric_begins_as_the_distance_of_the_means():
    network, means = PairMetric(6, 3), torch.randn(4, 3)
    found = network.pre_activation(network.prepare(DenseRows(means)), torch.tensor([0]), torch.tensor([1]))
    expected = 1.0 - 0.05 * 9.0 * (means[0] - means[1]).square().sum()
    torch.testing.assert_close(found, expected.expand(1, 3))


def test_metric_reads_means_and_its_gradient_reaches_them():
    network, _ = make("metric")
    means = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    first, second = torch.triu_indices(5, 5, 1)
    assert torch.autograd.gradcheck(
        lambda m: network.pre_activation(network.prepare(DenseRows(m)), first, second), means
    )


def test_a_network_of_ones_own_gets_blocks():
    x, y = torch.randn(3, 2), torch.randn(4, 2)
    torch.testing.assert_close(Product().block(x, y), x[:, None] * y[None])
