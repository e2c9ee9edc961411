import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae import CorrelatedVAE
from corrvae.building import Architecture, build_model
from corrvae.errors import TrainingError
from corrvae.fitting import (
    FitData,
    Seeds,
    clip_batch,
    plan_fit,
    run_plan,
    settings_of,
)
from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.training import TrainingSettings
from support.graphs import graphs

SEEDS = Seeds.of(0)


def features(n_rows):
    return np.arange(3.0 * n_rows).reshape(n_rows, 3) + 1


def test_seeds_follow_from_any_kind_of_random_state():
    assert Seeds.of(np.random.default_rng(3)) == Seeds.of(np.random.default_rng(3))
    assert Seeds.of(np.random.RandomState(3)) == Seeds.of(np.random.RandomState(3))
    assert len({*vars(Seeds.of(5)).values()}) == 4
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert Seeds.of(None) != Seeds.of(None)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@given(graphs(min_vertices=2))
def test_all_rows_are_trained_on_if_none_are_held_out(graph):
    plan = plan_fit(FitData(features(graph.n_vertices), graph=graph), 0.0, SEEDS)
    assert plan.validation is None
    assert plan.training.n_edges == graph.n_edges
    np.testing.assert_allclose(plan.weights, spanning_weights(graph).weights)
    assert plan.training.population.total_weight == graph.n_vertices - graph.n_components


@given(graphs(min_vertices=2, max_vertices=12), st.sampled_from([0.1, 0.3, 0.6]), st.integers(0, 50))
def test_parts_share_neither_rows_nor_edges_and_have_the_weights_of_their_own_graphs(graph, share, seed):
    X = features(graph.n_vertices)
    plan = plan_fit(FitData(X, graph=graph), share, Seeds.of(seed))
    held = np.setdiff1d(np.arange(graph.n_vertices), plan.rows)
    everyone = np.arange
    for part, rows in ((plan.training, plan.rows), (plan.validation, held)):
        assert np.array_equal(part.table.rows(everyone(part.n_vertices)).dense().numpy(), X[rows])
        own = graph[rows]
        assert part.n_edges == own.n_edges
        if own.n_edges:
            assert np.array_equal(part.edges, own.edges)
            np.testing.assert_allclose(part.weights, spanning_weights(own).weights, atol=1e-12)
    trained = np.isin(graph.edges, plan.rows).all(1)
    assert (plan.weights[trained] > 0).all()
    assert (plan.weights[~trained] == 0).all()
    assert plan.weights.sum() == pytest.approx(plan.training.population.total_weight)


def test_sample_weights_have_mean_one_in_every_part_and_redraw_gets_rows_of_the_whole():
    X, asked = features(20), []

    def redraw(rows, generator):
        asked.append(rows)
        return X[rows]

    data = FitData(X, sample_weight=np.arange(20.0) + 1, redraw=redraw)
    plan = plan_fit(data, 0.3, SEEDS)
    for part in (plan.training, plan.validation):
        assert part.sample_weights.mean() == pytest.approx(1.0)
    drawn = plan.training.rows(np.array([0, 5]), np.random.default_rng(0))
    assert np.array_equal(drawn.dense().numpy(), X[plan.rows[[0, 5]]])
    assert asked[0].tolist() == plan.rows[[0, 5]].tolist()


@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("make", [sparse.csr_array, np.asarray])
def test_parts_read_the_rows_where_they_are(make, density, tmp_path):
    X = (np.random.default_rng(0).random((40, 30)) < density).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    matrix = np.load(tmp_path / "x.npy", mmap_mode="r") if make is np.asarray else make(X)
    plan = plan_fit(FitData(matrix), 0.25, SEEDS)
    held = np.setdiff1d(np.arange(40), plan.rows)
    for part, rows in ((plan.training, plan.rows), (plan.validation, held)):
        kept = part.table._matrix
        assert np.shares_memory(kept, matrix) if make is np.asarray else np.shares_memory(kept.data, matrix.data)
        np.testing.assert_array_equal(part.table.rows(np.arange(len(rows))).dense().numpy(), X[rows])


def test_seeds_of_a_fit_that_goes_on_are_new_but_for_the_rows_held_out():
    drawn = [SEEDS, *(SEEDS.after(fits, 7) for fits in (1, 2))]
    assert len({seeds.training for seeds in drawn}) == 3
    assert [seeds.hold_out for seeds in drawn[1:]] == [7, 7]
    assert SEEDS.after(1, None).hold_out == SEEDS.hold_out
    assert SEEDS.after(1, 7) == drawn[1]


def test_a_single_row_cannot_be_held_out():
    with pytest.raises(ValueError, match="n_samples=1"):
        plan_fit(FitData(features(1)), 0.5, SEEDS)


def test_weights_of_zero_throughout_a_part_are_refused():
    weight = np.zeros(10)
    weight[plan_fit(FitData(features(10)), 0.2, SEEDS).rows] = 1.0
    with pytest.raises(ValueError, match="sample weight 0"):
        plan_fit(FitData(features(10), sample_weight=weight), 0.2, SEEDS)


def test_a_broken_term_names_rows_of_the_users_table():
    def redraw(rows, generator):
        values = np.ones((len(rows), 3))
        values[rows == plan.rows[-1]] = np.inf
        return values

    plan = plan_fit(FitData(np.ones((10, 3)), redraw=redraw), 0.3, SEEDS)
    model = build_model(Architecture(3, 2, hidden=(4,)), 0)
    with pytest.raises(TrainingError) as caught:
        run_plan(model, plan, TrainingSettings(max_steps=5, device="cpu"), ())
    assert caught.value.rows == (plan.rows[-1],)
    assert len(plan.rows) == 7
    assert plan.rows[-1] != 6


def test_a_term_that_breaks_on_validation_data_names_rows_of_the_users_table():
    def redraw(rows, generator):
        values = np.ones((len(rows), 3))
        values[rows == plan.held_out[-1]] = np.inf
        return values

    plan = plan_fit(FitData(np.ones((10, 3)), redraw=redraw), 0.3, SEEDS)
    model = build_model(Architecture(3, 2, hidden=(4,)), 0)
    with pytest.raises(TrainingError) as caught:
        run_plan(model, plan, TrainingSettings(max_steps=5, evaluate_every=2, device="cpu"), ())
    assert (caught.value.rows, caught.value.held_out, caught.value.step) == ((plan.held_out[-1],), True, 2)
    assert sorted([*plan.rows, *plan.held_out]) == list(range(10))
    assert plan.held_out[-1] != 2


def test_settings_follow_the_parameters():
    plan = plan_fit(FitData(features(100), graph=CorrelationGraph.from_edges([(0, 99)], n_vertices=100)), 0.0, SEEDS)
    settings = settings_of(CorrelatedVAE(max_epochs=3, gamma=(1, 2), random_state=1), plan.training, 7, "there")
    assert (settings.max_steps, settings.evaluate_every, settings.edge_batch) == (5, 2, 1)
    assert (settings.gamma, settings.seed, str(settings.checkpoint)) == ((1, 2), 7, "there")
    assert settings.checkpoint_minutes == 10.0
    settings = settings_of(CorrelatedVAE(max_steps=9, evaluate_every=4, random_state=1), plan.training, 7, "there", 50)
    assert (settings.max_steps, settings.evaluate_every) == (9, 4)
    assert (settings.checkpoint_steps, settings.checkpoint_minutes) == (50, None)
    settings = settings_of(CorrelatedVAE(gamma=[1, 2], random_state=1), plan.training, 7, "there", None, 0.5)
    assert (settings.gamma, settings.checkpoint_steps, settings.checkpoint_minutes) == ((1.0, 2.0), None, 0.5)
    assert settings_of(CorrelatedVAE(), plan.training, 7, "there", 50, 0.5).checkpoint_minutes == 0.5


def test_a_batch_that_the_user_chose_too_large_is_clipped_and_said():
    with pytest.warns(UserWarning, match="vertex_batch=65 is more than the 50 rows"):
        assert clip_batch("vertex_batch", 65, 50, "rows", 64) == 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clip_batch("vertex_batch", 64, 50, "rows", 64) == 50
        assert clip_batch("vertex_batch", 7, 50, "rows", 64) == 7


def test_minutes_between_checkpoints_can_be_chosen(tmp_path):
    found = []
    model = CorrelatedVAE(2, hidden=(4,), max_steps=3, vertex_batch=5, device="cpu", random_state=0)
    options = {"checkpoint": tmp_path / "state", "checkpoint_minutes": 1e-9}
    model.fit(features(10), **options, callbacks=[lambda _: found.append(len([*tmp_path.glob("state/step-*")]))])
    assert found == [0, 1, 2]
