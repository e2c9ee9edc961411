import json

import numpy as np
import pytest
import torch

from corrvae.model import Batch
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
