import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from corrvae.training import data as training_data
from corrvae.training import prepare_data
from corrvae.training.data import exhaustive, hold_out
from support.forests import random_edges, weights_by_enumeration
from support.training import small_data, small_matrix

N = 12
EDGES = random_edges(N, 0.25, 5)


def prepare(edges=EDGES, n_rows=N, **options):
    graph = None if edges is None else CorrelationGraph(edges, n_rows)
    return prepare_data(small_matrix(n_rows), graph, **options)


def test_without_validation_all_rows_and_edges_are_trained_on():
    prepared = prepare(batch_size=5, edge_batch_size=7, seed=3)
    data = prepared.training
    assert (data.batch_size, data.edge_batch_size, data.seed, data.n_pieces) == (5, 7, 3, None)
    np.testing.assert_array_equal(data.edges, EDGES)
    np.testing.assert_allclose(data.weights, weights_by_enumeration(N, EDGES), rtol=1e-9)
    np.testing.assert_array_equal(prepared.weights, data.weights)
    assert prepared.validation is None
    assert prepared.rows.tolist() == list(range(N))
    assert len(prepared.held_out) == 0
    plain = prepare(edges=None)
    assert plain.training.edges is plain.training.weights is plain.weights is None
    nothing = prepare(edges=np.empty((0, 2), dtype=np.int64))
    assert nothing.training.edges is None  # a VAE
    assert len(nothing.weights) == 0


@pytest.mark.parametrize("seed", range(4))
def test_parts_have_the_edges_and_spanning_weights_of_their_own_graphs(seed):
    prepared = prepare(validation_fraction=0.4, hold_out_seed=seed)
    rows, held_out = prepared.rows, prepared.held_out
    assert sorted([*rows, *held_out]) == list(range(N))
    for part, data in ((rows, prepared.training), (held_out, prepared.validation)):
        np.testing.assert_array_equal(data.table.rows(np.arange(len(part))).dense(), small_matrix(N)[part])
        inside = EDGES[np.isin(EDGES, part).all(1)]
        assert data.n_edges == len(inside)
        if len(inside):
            np.testing.assert_array_equal(part[data.edges], inside)
    np.testing.assert_allclose(
        prepared.training.weights, weights_by_enumeration(len(rows), prepared.training.edges), rtol=1e-9
    )
    trained_on = np.isin(EDGES, rows).all(1)
    np.testing.assert_array_equal(prepared.weights[trained_on], prepared.training.weights)
    assert not prepared.weights[~trained_on].any()


def test_edges_held_out_count_as_much_per_vertex_as_those_trained_on():
    path = np.stack([np.arange(39), np.arange(1, 40)], axis=1)
    found = prepare(path, 40, validation_fraction=0.4, hold_out_seed=1)
    training, validation = found.training, found.validation
    assert 0 < validation.n_edges < 16
    per_vertex = training.weights.sum() / training.n_vertices
    assert validation.weights.sum() / validation.n_vertices == pytest.approx(per_vertex)
    assert np.ptp(validation.weights) < 1e-9  # in proportion to their own, which are all 1


def test_where_one_part_has_no_edge():
    star = np.stack([np.zeros(9, dtype=np.int64), np.arange(1, 10)], axis=1)
    kinds = set()
    for seed in range(20):
        prepared = prepare(star, 10, validation_fraction=0.2, hold_out_seed=seed)
        if 0 in prepared.held_out:  # no edge to train on: both parts are a VAE's
            assert prepared.training.edges is prepared.validation.edges is prepared.validation.weights is None
        else:  # none held out: the terms of pairs count all the same
            assert prepared.validation.edges.shape == (0, 2)
        kinds.add(0 in prepared.held_out)
    assert kinds == {False, True}


def test_sample_weights_have_mean_one_in_each_part():
    given_weights = np.linspace(0, 5, N)
    prepared = prepare(sample_weight=given_weights, validation_fraction=0.3)
    for part, data in ((prepared.rows, prepared.training), (prepared.held_out, prepared.validation)):
        np.testing.assert_allclose(data.sample_weights, given_weights[part] / given_weights[part].mean())
    with pytest.raises(ValueError, match="all rows of a part of the data have sample weight 0"):
        prepare(sample_weight=np.eye(N)[0], validation_fraction=0.3)


def test_augmented_rows_are_those_of_the_whole_table():
    seen = []
    augment = lambda rows, _: seen.append(rows.tolist()) or small_matrix(N)[rows]  # noqa: E731
    prepared = prepare(augment=augment, validation_fraction=0.3)
    for part, data in ((prepared.rows, prepared.training), (prepared.held_out, prepared.validation)):
        batch = data.draw(0)
        assert seen[-1] == part[batch.vertices].tolist()


@pytest.mark.parametrize(("vertices", "edges"), [(2048, 4096), (7, 1000), (1000, 3), (2, 2), (1, 1)])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 60])
def test_pieces_cover_everything_once_and_have_two_vertices(monkeypatch, vertices, edges, n_rows):
    monkeypatch.setattr(training_data, "_VERTICES", vertices)
    monkeypatch.setattr(training_data, "_EDGES", edges)
    data = exhaustive(small_data(n_rows))
    batches = [data.draw(piece) for piece in range(data.n_pieces)]
    drawn = [vertex for batch in batches for vertex in batch.vertices[: batch.n_drawn]]
    assert sorted(drawn) == list(range(n_rows))
    assert min(batch.n_drawn for batch in batches) >= min(2, n_rows)
    found = np.concatenate([batch.vertices[batch.edges.numpy()] for batch in batches])
    assert sorted(found.tolist()) == sorted(data.edges.tolist())


# ---- which rows are held out


@given(st.integers(2, 60), st.integers(0, 80), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_the_share_of_rows_is_kept(n_vertices, n_edges, share, seed):
    edges = np.random.default_rng(seed).integers(0, n_vertices, (n_edges, 2))
    held = hold_out(n_vertices, edges, share, seed)
    wanted = min(max(1, round(share * n_vertices)), n_vertices - 1)
    # Components that are held out whole may not fill the last places.
    assert wanted - max(1, wanted // 4) <= held.sum() <= wanted
    assert 0 < held.sum() < n_vertices
    np.testing.assert_array_equal(hold_out(n_vertices, edges, share, seed), held)


def test_pairs_stay_together():
    edges = np.arange(2000).reshape(-1, 2)
    held = hold_out(2000, edges, 0.1, 0)
    assert held.sum() == 200
    assert (held[edges[:, 0]] == held[edges[:, 1]]).all()


def test_of_a_large_component_single_vertices_are_held_out():
    ring = np.stack([np.arange(1000), (np.arange(1000) + 1) % 1000], axis=1)
    held = np.flatnonzero(hold_out(1000, ring, 0.1, 0))
    assert len(held) == 100
    assert (np.diff(held) > 1).sum() > 50


def test_every_vertex_has_about_the_same_chance():
    """A ring of 40 vertices, 15 pairs, 30 vertices alone."""
    ring = np.stack([np.arange(40), (np.arange(40) + 1) % 40], axis=1)
    edges = np.concatenate([ring, np.arange(40, 70).reshape(-1, 2)])
    share = np.mean([hold_out(100, edges, 0.2, seed) for seed in range(1500)], axis=0)
    np.testing.assert_allclose(share, 0.2, atol=0.06)


def test_without_a_graph_any_vertex():
    assert hold_out(50, None, 0.3, 1).sum() == 15
    with pytest.raises(ValueError, match="at least two rows"):
        hold_out(1, None, 0.5, 0)
