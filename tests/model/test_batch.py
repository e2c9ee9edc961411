from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.model.batch import Shuffled, number_vertices
from corrvae.model.families import Independent, Pairwise
from corrvae.nn import FeatureTable
from support.training import D, N, small_data, small_matrix, sparse_table


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**32), st.integers(0, 3))
def test_each_index_comes_at_most_once_an_epoch(count, batch, seed, epoch):
    draws = Shuffled(count, batch, (seed, 0))
    size = min(batch, count)
    assert (draws.per_epoch, draws.scale) == (count // size, 1 / size)
    found = [draws.at(epoch * draws.per_epoch + place) for place in range(draws.per_epoch)]
    assert all(len(drawn) == size and drawn.dtype == np.int64 for drawn in found)
    drawn = np.concatenate(found)
    assert len(set(drawn.tolist())) == len(drawn) > count - size
    assert set(drawn.tolist()) <= set(range(count))


@given(st.integers(0, 30), st.integers(1, 12), st.integers(0, 2**32))
def test_pieces_leave_nothing_over(count, n_pieces, seed):
    draws = Shuffled(count, 4, (seed, 0), n_pieces=n_pieces)
    pieces = [draws.at(n_pieces + place) for place in range(n_pieces)]
    assert sorted(np.concatenate(pieces).tolist()) == list(range(count))
    assert np.ptp([len(piece) for piece in pieces]) <= 1
    # the mean over pieces of scale times the sum over a piece is the mean over all
    values = np.random.default_rng(seed).normal(size=count)
    means = [draws.scale * values[piece].sum() for piece in pieces]
    assert np.mean(means) == pytest.approx(values.mean() if count else 0.0)


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_every_subset_is_as_likely_as_any_other(batch):
    n_runs, n_steps = 2000, 4
    counts = np.zeros((n_steps, 1 << 5))
    for seed in range(n_runs):
        draws = Shuffled(5, batch, (seed, 0))
        for step in range(n_steps):
            counts[step, sum(1 << int(index) for index in draws.at(step))] += 1
    subsets = [sum(1 << index for index in subset) for subset in combinations(range(5), batch)]
    expected = n_runs / len(subsets)
    assert (counts[:, subsets].sum(axis=1) == n_runs).all()
    chi_square = ((counts[:, subsets] - expected) ** 2 / expected).sum(axis=1)
    assert (chi_square < len(subsets) - 1 + 5 * np.sqrt(2 * len(subsets))).all()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=10))
def test_a_step_draws_the_same_whatever_was_drawn_before(steps):
    """So a run resumes at any step."""
    asked, alone = Shuffled(10, 4, (3, 0)), [Shuffled(10, 4, (3, 0)) for _ in steps]
    for step, other in zip(steps, alone, strict=True):
        np.testing.assert_array_equal(asked.at(step), other.at(step))


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 2**16))
def test_distinct_vertices_and_the_edges_among_them(n_vertices, n_edges, seed):
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(n_vertices)[: generator.integers(1, n_vertices + 1)]
    edges = generator.integers(0, n_vertices, (n_edges, 2))
    vertices, positions = number_vertices(drawn, edges)
    assert len(set(vertices.tolist())) == len(vertices)
    np.testing.assert_array_equal(vertices[: len(drawn)], drawn)
    np.testing.assert_array_equal(vertices[positions], edges)


def test_a_batch_holds_what_was_drawn():
    data = small_data(sample_weights=np.linspace(0, 2, N))
    of_edge = {tuple(edge): weight for edge, weight in zip(data.edges.tolist(), data.weights, strict=True)}
    for step in (0, 1, 20):
        batch = data.draw(step)
        assert (batch.n_drawn, batch.drawn, batch.pairs) == (8, slice(0, 8), None)
        assert len(set(batch.vertices.tolist())) == len(batch.vertices)
        np.testing.assert_array_equal(batch.rows.dense(), small_matrix()[batch.vertices])
        edges = batch.vertices[batch.edges.numpy()]
        expected = [of_edge[tuple(edge)] * N / (10 * N) for edge in edges.tolist()]  # m / (n batch)
        np.testing.assert_allclose(batch.edge_weights, expected, rtol=1e-6)
        np.testing.assert_allclose(batch.vertex_weights, np.linspace(0, 2, N)[batch.vertices[:8]] / 8, rtol=1e-6)


def test_without_edges_a_batch_is_a_vaes():
    batch = Pairwise().draw(small_data(edges=None, weights=None), 0)
    assert batch.edges is batch.edge_weights is batch.pairs is None
    assert len(batch.vertices) == batch.n_drawn == 8


def test_batches_larger_than_the_data_are_all_of_it():
    batch = small_data(batch_size=1000, edge_batch_size=1000).draw(0)
    assert batch.n_drawn == len(batch.edges) == N
    assert sorted(batch.vertices.tolist()) == list(range(N))


@pytest.mark.parametrize("family", [Independent(), Pairwise(pair_batch=5)])
def test_the_same_seed_and_step_draw_the_same(family):
    def draw(seed, step):
        batch = family.draw(small_data(seed=seed), step)
        return batch.vertices.tolist(), batch.edges.tolist(), None if batch.pairs is None else batch.pairs.tolist()

    first, again, other_step, other_seed = draw(1, 3), draw(1, 3), draw(1, 4), draw(2, 3)
    assert first == again
    for one, two, three in zip(first, other_step, other_seed, strict=True):
        assert one is None or (one != two and one != three)


def test_pairs_of_the_drawn_vertices():
    data = small_data()
    batch = Pairwise(pair_batch=5).draw(data, 0)
    assert batch.pairs.shape == (5, 2)
    assert bool((batch.pairs < 8).all())
    assert batch.pair_weight == pytest.approx((N - 1) / (5 * N))
    for all_of_them in (None, 28, 1000):
        batch = Pairwise(pair_batch=all_of_them).draw(data, 0)
        assert batch.pairs.tolist() == [list(pair) for pair in combinations(range(8), 2)]
        assert batch.pair_weight == pytest.approx((N - 1) / (28 * N))
    assert len(Pairwise(pair_batch=20).draw(small_data(max_pairs=7), 0).pairs) == 7
    assert len(Pairwise(pair_batch=6).draw(small_data(max_pairs=7), 0).pairs) == 6


def test_drawn_pairs_are_uniform():
    data = small_data()
    pairs = np.concatenate([data.draw_pairs(step, 4, 5) for step in range(6000)])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    counts = np.bincount(np.sort(pairs, axis=1) @ [4, 1])
    counts = counts[counts > 0]
    assert len(counts) == 6
    np.testing.assert_allclose(counts / len(pairs), 1 / 6, atol=5 * 0.4 / np.sqrt(len(pairs)))


def test_a_pair_needs_two_vertices_unless_there_is_only_one():
    with pytest.raises(ValueError, match="batch_size of at least 2"):
        Pairwise().draw(small_data(batch_size=1), 0)
    batch = Pairwise().draw(small_data(1, edges=np.empty((0, 2), dtype=np.int64), weights=None), 0)
    assert len(batch.pairs) == 0
    assert batch.pair_weight == 0.0


@pytest.mark.parametrize("as_sparse", [False, True])
def test_augmented_features_take_the_tables_place(as_sparse):
    seen = []

    def augment(rows, generator):
        features = 100.0 * rows[:, None] + generator.random((len(rows), D))
        seen.append((rows.copy(), features))
        return sparse.csr_array(features) if as_sparse else features

    data = small_data(augment=augment)
    for step in (0, 0, 1):
        batch = data.draw(step)
        np.testing.assert_array_equal(seen[-1][0], batch.vertices)
        np.testing.assert_allclose(batch.rows.dense(), seen[-1][1], rtol=1e-6)
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    assert (seen[0][1] - 100.0 * seen[0][0][:, None])[0, 0] != (seen[2][1] - 100.0 * seen[2][0][:, None])[0, 0]


def test_augmented_features_do_not_share_random_numbers_with_the_pairs():
    numbers = []
    data = small_data(augment=lambda rows, generator: numbers.append(generator.random()) or np.ones((len(rows), D)))
    data.draw(5)
    assert numbers[0] != data.generator(5).random()


def test_augmented_features_may_have_missing_entries():
    table = FeatureTable(small_matrix(), missing=True)
    batch = small_data(table=table, augment=lambda rows, _: np.full((len(rows), D), np.nan)).draw(0)
    assert batch.rows.dense().sum() == 0
    assert not batch.rows.observed.any()


def test_augmented_features_must_have_the_right_shape():
    data = small_data(augment=lambda rows, _: np.ones((len(rows) + 1, D)), edges=None, weights=None)
    with pytest.raises(ValueError, match=rf"shape \(9, {D}\) instead of \(8, {D}\)"):
        data.draw(0)


def test_nothing_of_the_size_of_the_data_is_read_in_a_step():
    asked = []
    data = small_data(5000, augment=lambda rows, _: asked.append(len(rows)) or np.ones((len(rows), D)))
    for step in range(5):
        Pairwise().draw(data, step)
    assert max(asked) <= 8 + 2 * 10


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_workers_share_what_one_alone_draws(count):
    batch = Pairwise(pair_batch=7).draw(small_data(sample_weights=np.linspace(0, 2, N)), 4)
    shares = [batch.share(worker, count) for worker in range(count)]
    assert [index for share in shares for index in range(8)[share.drawn]] == list(range(8))
    for name in ("edges", "pairs"):
        assert torch.cat([getattr(share, name) for share in shares]).equal(getattr(batch, name))
    for name in ("vertex_weights", "edge_weights"):
        whole = torch.cat([getattr(share, name) for share in shares]) / count
        torch.testing.assert_close(whole, getattr(batch, name))
    assert all(share.pair_weight == count * batch.pair_weight for share in shares)


def test_vertices_behind_the_draws_of_a_term():
    batch = Pairwise(pair_batch=7).draw(small_data(), 0)
    assert batch.vertices_of("reconstruction", np.array([2])) == [batch.vertices[2]]
    share = batch.share(1, 2)
    assert share.vertices_of("singleton", np.array([2])) == [batch.vertices[4 + 2]]
    for name in ("edge", "non_edge"):
        ends = {"edge": share.edges, "non_edge": share.pairs}[name][1].numpy()
        assert sorted(share.vertices_of(name, np.array([1]))) == sorted(batch.vertices[ends].tolist())


@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_batch_moves_to_a_device_whole(as_sparse):
    data = small_data(table=sparse_table(small_matrix(), as_sparse=as_sparse))
    batch = Pairwise().draw(data, 0)
    assert batch.to(torch.device("cpu")) is batch
    moved = batch.to(torch.device("meta"))
    tensors = (moved.rows.values, moved.vertex_weights, moved.edges, moved.edge_weights, moved.pairs)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert (moved.n_drawn, moved.drawn, moved.pair_weight) == (batch.n_drawn, batch.drawn, batch.pair_weight)


def test_vertices_and_edges_are_shuffled_apart():
    data = small_data(batch_size=N, edge_batch_size=N)  # as many edges as vertices
    for step in range(3):
        assert data.vertex_draws.at(step).tolist() != data.edge_draws.at(step).tolist()
