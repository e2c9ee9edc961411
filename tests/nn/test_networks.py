import pytest
import torch
from torch.nn.functional import linear, softplus

from corrvae.nn import Decoder, DenseRows, Encoder


def test_encoder_is_the_papers():
    torch.manual_seed(0)
    encoder, x = Encoder(7, 3, hidden=(5,), floor=0.01), torch.rand(4, 7)
    hidden = linear(x, encoder.first.weight.T, encoder.first.bias).clamp(min=0)
    output = encoder.rest[1](hidden)
    marginals = encoder(DenseRows(x))
    torch.testing.assert_close(marginals.mean, output[:, :3])
    torch.testing.assert_close(marginals.stddev, softplus(output[:, 3:]) + 0.01)
    assert Encoder(7, 3).first.weight.shape == (7, 300)
    assert len(list(Encoder(7, 3, hidden=(6, 5)).parameters())) == 6


@pytest.mark.parametrize("hidden", [(), (5,), (6, 5)])
def test_gradients_reach_every_weight(hidden):
    torch.manual_seed(0)
    encoder, decoder = Encoder(7, 3, hidden=hidden).double(), Decoder(3, 7, hidden=hidden).double()
    rows = DenseRows(torch.rand(4, 7, dtype=torch.float64))
    parameters = {name: value.detach().requires_grad_() for name, value in encoder.named_parameters()}

    def encode(*values):
        return torch.func.functional_call(encoder, dict(zip(parameters, values, strict=True)), (rows,)).joint

    assert torch.autograd.gradcheck(encode, tuple(parameters.values()))
    assert torch.autograd.gradcheck(decoder, torch.randn(4, 3, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_the_standard_deviation_is_finite_and_above_its_floor(size):
    encoder = Encoder(2, 1, hidden=(), floor=1e-4)
    torch.nn.init.constant_(encoder.first.bias, size)
    stddev = encoder(DenseRows(torch.zeros(1, 2))).stddev
    assert float(stddev.detach()) == pytest.approx(max(size, 0.0) + 1e-4)


def test_decoder_is_the_papers():
    torch.manual_seed(0)
    decoder, z = Decoder(3, 7, hidden=(5,)), torch.randn(4, 3)
    first, _, last = decoder.layers
    torch.testing.assert_close(decoder(z), last(first(z).clamp(min=0)))
    assert Decoder(3, 7).layers[0].out_features == 300


def test_any_number_of_points_can_be_decoded_at_once():
    decoder, z = Decoder(3, 7), torch.randn(2, 4, 3)
    torch.testing.assert_close(decoder(z)[1], decoder(z[1]))
