import torch

from corrvae.nn import Decoder


def test_decoder_is_the_papers():
    torch.manual_seed(0)
    decoder, z = Decoder(3, 7, hidden=(5,)), torch.randn(4, 3)
    first, _, last = decoder.layers
    torch.testing.assert_close(decoder(z), last(first(z).clamp(min=0)))
    assert Decoder(3, 7).layers[0].out_features == 300


def test_any_number_of_points_can_be_decoded_at_once():
    decoder, z = Decoder(3, 7), torch.randn(2, 4, 3)
    torch.testing.assert_close(decoder(z)[1], decoder(z[1]))
