import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.training.draws import ShuffledDraws, WeightedDraws


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**32))
def test_every_index_comes_once_an_epoch_and_at_most_once_a_batch(count, batch, seed):
    draws = ShuffledDraws(count, batch, np.random.default_rng(seed))
    assert draws.batch == min(batch, count)
    batches = [draws.draw() for _ in range(3 * count)]
    for drawn in batches:
        assert drawn.dtype == np.int64
        assert len(set(drawn.tolist())) == len(drawn) == draws.batch
    epochs = np.concatenate(batches).reshape(3 * draws.batch, count)
    for epoch in epochs:
        assert sorted(epoch.tolist()) == list(range(count))


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_every_subset_is_as_likely_as_any_other(batch):
    """Also for the batches that hold the end of one epoch and the beginning of the next."""
    generator = np.random.default_rng(0)
    n_runs, n_batches = 3000, 5
    counts = np.zeros((n_batches, 5**5))
    for _ in range(n_runs):
        draws = ShuffledDraws(5, batch, generator)
        for number in range(n_batches):
            counts[number, sum(1 << int(index) for index in draws.draw())] += 1
    subsets = [sum(1 << index for index in subset) for subset in combinations(range(5), batch)]
    expected = n_runs / len(subsets)
    assert (counts[:, subsets].sum(axis=1) == n_runs).all()
    chi_square = ((counts[:, subsets] - expected) ** 2 / expected).sum(axis=1)
    assert (chi_square < len(subsets) - 1 + 5 * np.sqrt(2 * len(subsets))).all()


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0, 7.0]), min_size=1, max_size=20), st.integers(0, 2**32))
def test_weighted_draws_never_meet_a_weight_of_zero(weights, seed):
    weights = np.array(weights)
    if not weights.any():
        with pytest.raises(ValueError, match="zero"):
            WeightedDraws(weights, 4, np.random.default_rng(seed))
        return
    drawn = WeightedDraws(weights, 4, np.random.default_rng(seed)).draw()
    assert len(drawn) == min(4, len(weights))
    assert (weights[drawn] > 0).all()


def test_weighted_draws_keep_to_their_proportions():
    weights = np.array([1.0, 0.0, 2.0, 5.0])
    draws = WeightedDraws(weights, 4, np.random.default_rng(0))
    drawn = np.concatenate([draws.draw() for _ in range(20_000)])
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, weights / 8, atol=5 * 0.5 / np.sqrt(len(drawn)))


def test_a_place_past_the_end_leads_to_the_last_edge_with_a_weight():
    class Largest(np.random.Generator):
        def random(self, size):
            return np.ones(size)

    draws = WeightedDraws(np.array([1.0, 2.0, 0.0]), 2, Largest(np.random.PCG64(0)))
    assert draws.draw().tolist() == [1, 1]


@pytest.mark.parametrize("position", [0, 1, 2, 3, 7, 20])
@pytest.mark.parametrize("kind", ["shuffled", "weighted"])
def test_a_stream_goes_on_from_its_state(kind, position):
    def make(seed):
        generator = np.random.default_rng(seed)
        return ShuffledDraws(10, 4, generator) if kind == "shuffled" else WeightedDraws(np.ones(10), 4, generator)

    whole, other = make(0), make(1)
    for _ in range(position):
        whole.draw()
    state = json.loads(json.dumps(whole.state()))
    rest = [whole.draw() for _ in range(12)]
    other.restore(state)
    np.testing.assert_array_equal([other.draw() for _ in range(12)], rest)


@pytest.mark.parametrize(
    "change",
    [
        {"position": -1},
        {"position": 19},
        {"position": 2.0},
        {"position": True},
        {"carried": [1, 1]},
        {"carried": [0, 1, 2, 3]},
    ],
)
def test_a_position_that_cannot_be_is_refused(change):
    draws = ShuffledDraws(10, 4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no position in a stream"):
        draws.restore({**draws.state(), **change})
