import numpy as np
import torch

from corrvae.ranks import Ranks
from corrvae.training.batches import BatchSource
from corrvae.training.noise import SharedNoise
from support.training import small_data, small_model, small_settings


def noise_of(ranks: Ranks, dropout: float = 0.0):
    model, generator = small_model("bilinear", dropout=dropout), torch.Generator().manual_seed(4)
    batches = BatchSource(small_data(), small_settings(), np.random.SeedSequence(0), ranks=ranks)
    shared = SharedNoise(model, generator, ranks, batches.n_drawn)
    return [shared.draw(batches.next().batch) for _ in range(3)], generator.get_state()


def test_ranks_have_the_parts_of_what_one_alone_draws():
    alone = torch.Generator().manual_seed(4)
    parts = [noise_of(Ranks(index, 3)) for index in range(3)]
    for step in range(3):
        whole = torch.randn((8, 3), generator=alone)
        assert torch.cat([noises[step].latent for noises, _ in parts]).equal(whole)
        assert all(noises[step].generator() is None for noises, _ in parts)
    assert all(state.equal(alone.get_state()) for _, state in parts)


def test_dropout_is_each_ranks_own_and_moves_the_common_stream_alike():
    (first, state), (second, other) = (noise_of(Ranks(index, 2), dropout=0.5) for index in range(2))
    assert state.equal(other)
    draws = [torch.rand(5, generator=noise.generator()) for noise in (*first, *second)]
    assert len({tuple(draw.tolist()) for draw in draws}) == 6
    assert torch.rand(5, generator=first[0].generator()).equal(draws[0])  # a step may be made twice


def test_global_chance_is_left_alone():
    before = torch.get_rng_state()
    noise_of(Ranks(0, 2), dropout=0.5)
    assert torch.get_rng_state().equal(before)
