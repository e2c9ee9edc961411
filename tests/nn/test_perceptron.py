import pytest
import torch
from torch.nn.functional import linear

from corrvae.nn import DenseRows, PairPerceptron
from corrvae.nn.perceptron import symmetric_hidden


def concatenated(network: PairPerceptron, x_i: torch.Tensor, x_j: torch.Tensor) -> torch.Tensor:
    """The network as it is defined: the whole chain for [x_i; x_j] and for [x_j; x_i], outputs averaged."""
    weight = torch.cat(network.weight.chunk(2, 1))

    def chain(x: torch.Tensor) -> torch.Tensor:
        hidden = network.middle(x @ weight + network.bias).clamp(min=0)
        return linear(hidden, network.last.weight, network.last.bias)

    return (chain(torch.cat([x_i, x_j], 1)) + chain(torch.cat([x_j, x_i], 1))) / 2


@pytest.mark.parametrize("hidden", [(11,), (11, 5), (11, 5, 4)])
@pytest.mark.parametrize("n_pairs", [0, 1, 37])
def test_value_and_gradients_equal_the_concatenated_form(hidden, n_pairs):
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
def test_swapping_a_pair_changes_no_bit(hidden):
    torch.manual_seed(2)
    network = PairPerceptron(6, 3, hidden=hidden)
    prepared = network.prepare(DenseRows(torch.randn(9, 6)))
    first, second = torch.randint(0, 9, (2, 40))
    there, back = network.pre_activation(prepared, first, second), network.pre_activation(prepared, second, first)
    assert there.equal(back)


def test_defaults_are_the_papers_and_at_least_one_hidden_layer_is_needed():
    assert PairPerceptron(6, 3).bias.shape == (1000,)
    with pytest.raises(ValueError, match="at least one hidden layer"):
        PairPerceptron(6, 3, hidden=())
    with pytest.raises(ValueError, match="5 columns"):
        PairPerceptron(6, 3).prepare(DenseRows(torch.zeros(1, 5)))


def test_what_is_not_a_number_is_not_hidden():
    table = torch.tensor([[1.0, float("nan")], [2.0, 1.0], [-5.0, 1.0], [3.0, 1.0]])
    assert symmetric_hidden(table, torch.tensor([0]), torch.tensor([1])).isnan().tolist() == [[False, True]]
