import pytest
import torch
from torch.nn.functional import linear

from corrvae.nn import DenseRows
from corrvae.nn.layers import RowsLinear, check_widths, perceptron, uniform_parameter


def test_rows_linear_is_a_linear_layer():
    layer, x = RowsLinear(5, 3), torch.rand(4, 5)
    torch.testing.assert_close(layer(DenseRows(x)), linear(x, layer.weight.T, layer.bias))
    with pytest.raises(ValueError, match="6 columns, but the network was made for 5"):
        layer(DenseRows(torch.rand(4, 6)))


def test_initial_weights_fill_torchs_range():
    torch.manual_seed(0)
    drawn = uniform_parameter((200, 200), 400).detach()
    assert float(drawn.abs().max()) <= 1 / 20
    assert float(drawn.std()) == pytest.approx(1 / 20 / 3**0.5, rel=0.02)


def test_perceptron_rectifies_between_layers():
    torch.manual_seed(0)
    network, x = perceptron((2, 8, 1)), torch.randn(5, 2)
    first, last = network[0], network[2]
    torch.testing.assert_close(network(x), last(first(x).clamp(min=0)))
    after = perceptron((8, 1), after_hidden=True)
    hidden = torch.randn(5, 8)
    torch.testing.assert_close(after(hidden.clone()), after[1](hidden.clamp(min=0)))
    assert len(perceptron((8,), after_hidden=True)) == 0


def test_widths_must_be_positive():
    assert check_widths("hidden", [3, 2]) == (3, 2)
    with pytest.raises(ValueError, match="hidden must hold positive integers"):
        check_widths("hidden", (3, 0))
