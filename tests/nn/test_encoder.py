import pytest
import torch
from torch.nn.functional import linear, softplus

from corrvae.nn import DenseRows, Encoder, Marginals


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


def test_marginals_pick_rows():
    mean, stddev = torch.randn(4, 3), torch.rand(4, 3)
    marginals = Marginals.of(mean, stddev)
    picked = marginals.at(torch.tensor([2, 0, 2]))
    assert picked.mean.equal(mean[[2, 0, 2]])
    assert picked.stddev.equal(stddev[[2, 0, 2]])
    assert marginals.head(2).stddev.equal(stddev[:2])


def test_floor_must_be_positive():
    with pytest.raises(ValueError, match="floor must be positive"):
        Encoder(3, 2, floor=0.0)
