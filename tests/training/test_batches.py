import json

import numpy as np
import pytest
import torch

from corrvae.model import Batch
from corrvae.ranks import Ranks
from corrvae.training.batches import BatchSource, uniform_pairs
from support.training import D, N, small_data, small_matrix, small_model, small_settings
from support.unchecked import unchecked


def source(seed: int = 0, data=None, **changes) -> BatchSource:
    return BatchSource(data or small_data(), small_settings(**changes), np.random.SeedSequence(seed))


def test_a_batch_holds_what_was_drawn():
    data = small_data(sample_weights=np.linspace(0, 2, N))
    of_edge = {tuple(edge): weight for edge, weight in zip(data.edges.tolist(), data.weights, strict=True)}
    for drawn in (source(data=data).next() for _ in range(3)):
        batch, vertices = drawn.batch, drawn.vertices
        assert batch.n_drawn == 8
        assert len(set(vertices.tolist())) == len(vertices)
        np.testing.assert_array_equal(batch.rows.dense(), small_matrix()[vertices])
        edges = vertices[batch.edges.numpy()]
        expected = [of_edge[tuple(edge)] for edge in edges.tolist()]
        np.testing.assert_allclose(batch.edge_weights, expected, rtol=1e-6)
        np.testing.assert_allclose(batch.vertex_weights, np.linspace(0, 2, N)[vertices[:8]], rtol=1e-6)
        assert batch.pairs is None


def test_without_edges_a_batch_is_a_vaes():
    for edges in (None, np.empty((0, 2), dtype=np.int64)):
        drawn = source(data=small_data(edges=edges, weights=None)).next()
        assert drawn.batch.edges is None
        assert len(drawn.vertices) == drawn.batch.n_drawn == 8


def test_batches_larger_than_the_data_are_all_of_it():
    drawn = source(vertex_batch=1000, edge_batch=1000).next()
    assert drawn.batch.n_drawn == N
    assert sorted(drawn.vertices.tolist()) == list(range(N))
    assert len(drawn.batch.edges) == N


def test_edges_in_proportion_to_weights_carry_none():
    weights = np.zeros(N)
    weights[[3, 4]] = 1.0
    drawn = source(data=small_data(weights=weights), edge_sampling="weighted").next()
    assert drawn.batch.edge_weights is None
    assert set(drawn.vertices[drawn.batch.edges.numpy()].reshape(-1).tolist()) <= {3, 4, 5}


def test_the_same_seed_draws_the_same():
    def draw(seed):
        batches = source(seed, pair_batch=5)
        return [batches.next().vertices.tolist() for _ in range(3)]

    assert draw(1) == draw(1) != draw(2)


def test_pairs_of_the_drawn_vertices():
    pairs = source(pair_batch=5).next().batch.pairs
    assert pairs.shape == (5, 2)
    assert bool((pairs < 8).all())
    assert source(pair_batch=27).next().batch.pairs is not None
    assert source(pair_batch=28).next().batch.pairs is None  # all there are


def test_pairs_are_uniform():
    pairs = uniform_pairs(4, 60_000, np.random.default_rng(0))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    counts = np.bincount(np.sort(pairs, axis=1) @ [4, 1])
    counts = counts[counts > 0]
    assert len(counts) == 6
    np.testing.assert_allclose(counts / 60_000, 1 / 6, atol=5 * 0.4 / np.sqrt(60_000))


@pytest.mark.parametrize("sampling", ["uniform", "weighted"])
def test_a_source_goes_on_from_its_state(sampling):
    data = small_data(redraw=lambda rows, generator: generator.random((len(rows), D)))
    settings = {"edge_sampling": sampling, "pair_batch": 4}
    whole, other = source(0, data, **settings), source(9, data, **settings)
    for _ in range(11):
        whole.next()
    other.restore(json.loads(json.dumps(whole.state())))
    for _ in range(11):
        mine, theirs = whole.next().batch, other.next().batch
        for part in ("edges", "pairs", "edge_weights"):
            a, b = getattr(mine, part), getattr(theirs, part)
            assert (a is None and b is None) or a.equal(b)
        assert mine.rows.dense().equal(theirs.rows.dense())


@pytest.mark.parametrize("sampling", ["uniform", "weighted"])
@pytest.mark.parametrize("pair_batch", [None, 6])
def test_batches_estimate_the_objective_without_bias(sampling, pair_batch):
    """The mean over many batches is the objective over all vertices, edges and pairs, within its standard error."""
    data, model = small_data(12), small_model("perceptron")
    weights = torch.from_numpy(data.weights).float()
    with torch.no_grad(), unchecked():
        rows = data.table.rows(np.arange(12))
        batch = Batch(rows, 12, edges=torch.from_numpy(data.edges), edge_weights=weights)
        full = model.terms(batch, data.population, gamma=0.5, noise=torch.zeros(12, 3)).floats()
        batches = source(0, data, vertex_batch=5, edge_batch=4, edge_sampling=sampling, pair_batch=pair_batch)
        found = [
            model.terms(batches.next().batch, data.population, gamma=0.5, noise=torch.zeros(5, 3)).floats()
            for _ in range(600)
        ]
    for name, value in full.items():
        values = np.array([terms[name] for terms in found])
        assert values.std() > 1e-3
        # Shuffled epochs make the error smaller than that of independent draws, never larger.
        assert abs(values.mean() - value) < 4 * values.std() / np.sqrt(len(values)), name


def shares_of(count: int, *, with_pairs: bool = True, data=None, **changes) -> list[BatchSource]:
    settings, seeds = small_settings(**changes), [np.random.SeedSequence(0) for _ in range(count)]
    return [
        BatchSource(data or small_data(), settings, seed, ranks=Ranks(index, count), with_pairs=with_pairs)
        for index, seed in enumerate(seeds)
    ]


@pytest.mark.parametrize("pair_batch", [None, 7])
@pytest.mark.parametrize("count", [2, 3])
def test_ranks_share_what_one_alone_draws(count, pair_batch):
    data = small_data(sample_weights=np.linspace(0, 2, N))
    alone, ranks = source(data=data, pair_batch=pair_batch), shares_of(count, data=data, pair_batch=pair_batch)
    for _ in range(9):  # past the end of an epoch
        whole, parts = alone.next(), [rank.next() for rank in ranks]
        drawn = np.concatenate([part.vertices[: part.batch.n_drawn] for part in parts])
        assert drawn.tolist() == whole.vertices[:8].tolist()
        pairs = torch.triu_indices(8, 8, 1).T if whole.batch.pairs is None else whole.batch.pairs
        for name, positions in (("edges", whole.batch.edges), ("pairs", pairs)):
            ends = np.concatenate([part.vertices[getattr(part.batch, name).numpy()] for part in parts])
            assert ends.tolist() == whole.vertices[positions.numpy()].tolist()
        for name in ("edge_weights", "vertex_weights"):
            assert torch.cat([getattr(part.batch, name) for part in parts]).equal(getattr(whole.batch, name))
        for part in parts:
            np.testing.assert_array_equal(part.batch.rows.dense(), small_matrix()[part.vertices])
            assert len(set(part.vertices.tolist())) == len(part.vertices)
            assert part.shares["singleton"] == pytest.approx(part.batch.n_drawn * count / 8)
            assert part.shares["edge"] == pytest.approx(len(part.batch.edges) * count / 10)
            assert part.shares["non_edge"] == pytest.approx(len(part.batch.pairs) * count / len(pairs))
        assert whole.shares is None
    for rank in ranks:  # so that any number of ranks can go on from here
        assert json.dumps(rank.state()) == json.dumps(alone.state())


def test_ranks_encode_no_vertex_for_pairs_that_nobody_looks_at():
    for part in (rank.next() for rank in shares_of(4, with_pairs=False)):
        assert set(part.vertices.tolist()) == {
            *part.vertices[:2].tolist(),
            *part.vertices[part.batch.edges.numpy()].reshape(-1).tolist(),
        }


def test_features_drawn_anew_are_each_ranks_own():
    seen = []

    def redraw(rows, generator):
        seen.append(generator.random(3).tolist())
        return np.ones((len(rows), D))

    ranks = shares_of(2, data=small_data(redraw=redraw))
    for rank in (*ranks, *ranks):
        rank.next()
    assert len({tuple(numbers) for numbers in seen}) == 4
    assert json.dumps(ranks[0].state()) == json.dumps(ranks[1].state())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vertex_batch": 2}, "vertex_batch=2 cannot be shared among 3 processes"),
        ({"edge_batch": 2}, "edge_batch=2 cannot be shared among 3 processes"),
        ({"pair_batch": 2}, "pair_batch=2 cannot be shared among 3 processes"),
    ],
)
def test_a_rank_without_anything_to_do_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        shares_of(3, **changes)
    shares_of(3, vertex_batch=3, edge_batch=3)
    shares_of(4, vertex_batch=4, pair_batch=2, with_pairs=False)
