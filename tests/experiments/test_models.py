import signal

import numpy as np
import pytest

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments.models import all_parameters, describe_settings, embed, fit_estimator, history_of, thin
from corrvae.experiments.outcomes import Run
from corrvae.experiments.recipes import Entry
from support.experiments import COUNTS, PAIRWISE

X = np.random.default_rng(0).poisson(0.6, (40, 9)).astype(np.float32) + np.eye(40, 9, dtype=np.float32)
GRAPH = CorrelationGraph.from_edges([(i, (i + 1) % 40) for i in range(40)])


def test_the_estimator_is_the_one_of_the_recipe():
    entry = Entry("corr", "CVAE_corr", "cvae", {**COUNTS, **PAIRWISE, "gamma": (0.0, 2.0)})
    found = fit_estimator(entry, X, GRAPH, Run(4))
    expected = CorrelatedVAE(**entry.parameters, evaluate_every=1, device="cpu", random_state=4).fit(X, graph=GRAPH)
    assert np.array_equal(found.embedding_, expected.embedding_)
    assert np.array_equal(found.stddev_, expected.stddev_)


def test_a_vae_is_not_shown_the_graph():
    entry = Entry("vae", "VAE", "vae", COUNTS)
    model = fit_estimator(entry, X, GRAPH, Run(0))
    assert model.graph_ is None
    expected = CorrelatedVAE(**COUNTS, evaluate_every=1, device="cpu", random_state=0).fit(X)
    assert np.array_equal(model.embedding_, expected.embedding_)


@pytest.mark.parametrize("asked", [True, False])
def test_halves_are_redrawn_only_if_asked(asked):
    drawn = []

    def redraw(rows, generator):
        drawn.append(rows)
        return X[rows]

    fit_estimator(Entry("ind", "CVAE_ind", "cvae", COUNTS, redraw=asked), X, GRAPH, Run(0), redraw=redraw)
    assert bool(drawn) == asked


@pytest.mark.parametrize("method", ["graph_sage", "variational_graph"])
def test_networks_are_trained_with_the_seed_of_the_run(method):
    pytest.importorskip("torch_geometric")
    import corrvae.baselines

    settings = {"n_components": 3, "hidden": 4, "n_steps": 2}
    for seed in (0, 5):
        found = embed(Entry("net", "net", method, settings), X, GRAPH, Run(seed)).embedding
        expected = getattr(corrvae.baselines, method)(X, GRAPH, **settings, seed=seed)
        assert np.array_equal(found, expected)
        other = getattr(corrvae.baselines, method)(X, GRAPH, **settings, seed=seed + 1)
        assert not np.allclose(found, other)


def test_progress_is_reported():
    seen = []
    fit_estimator(Entry("vae", "VAE", "vae", COUNTS), X, GRAPH, Run(0, report=lambda *said: seen.append(said)))
    assert seen == [("training", step, 6) for step in range(1, 7)]


def test_an_interrupted_training_is_taken_up_where_it_was(tmp_path):
    entry = Entry("ind", "CVAE_ind", "cvae", COUNTS)

    def press(doing, done, total):
        if done == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit_estimator(entry, X, GRAPH, Run(0, tmp_path / "waiting", press))
    steps = []
    model = fit_estimator(entry, X, GRAPH, Run(0, tmp_path / "waiting", lambda doing, done, total: steps.append(done)))
    assert steps == [4, 5, 6]
    assert np.array_equal(model.embedding_, fit_estimator(entry, X, GRAPH, Run(0)).embedding_)


def test_baselines_embed_every_row():
    pytest.importorskip("torch_geometric")
    for method, settings in (
        ("graph_sage", {"n_components": 2, "hidden": 4, "n_steps": 3, "edge_batch": 8, "n_negatives": 2}),
        ("variational_graph", {"n_components": 2, "hidden": 4, "n_steps": 3}),
    ):
        seen = []
        found = embed(
            Entry("x", "x", method, settings), X, GRAPH, Run(0, report=lambda *said, seen=seen: seen.append(said))
        )
        assert found.embedding.shape == (40, 2)
        assert found.history["step"] == [1.0, 2.0, 3.0]
        assert len(found.history["loss"]) == 3
        assert seen[-1] == ("training", 3, 3)


@pytest.mark.parametrize(("method", "steps"), [("graph_sage", 300), ("variational_graph", 200)])
def test_how_far_a_baseline_is_is_told_though_the_recipe_leaves_its_steps_open(method, steps):
    pytest.importorskip("torch_geometric")
    seen = []

    def stop(*said):
        seen.append(said)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(Entry("x", "x", method, {"n_components": 2, "hidden": 4}), X, GRAPH, Run(0, report=stop))
    assert seen == [("training", 1, steps)]


def test_what_embeds_nothing_is_refused():
    with pytest.raises(ValueError, match="'degree' is no method that embeds"):
        embed(Entry("degree", "degree", "degree"), X, GRAPH, Run(0))


def test_histories_keep_both_ends_and_every_term():
    model = fit_estimator(Entry("ind", "CVAE_ind", "cvae", COUNTS), X, GRAPH, Run(0))
    history = history_of(model)
    assert history["step"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert set(history) == {"step", "epoch", "reconstruction", "singleton", "edge", "non_edge", "total"}
    np.testing.assert_allclose(history["total"], model.history_["total"], rtol=1e-5)
    long = thin({"step": [float(step) for step in range(5000)], "total": [1 / 3] * 5000})
    assert len(long["step"]) == len(long["total"]) == 200
    assert (long["step"][0], long["step"][-1], long["total"][0]) == (0.0, 4999.0, 0.333333)


def test_settings_hold_what_was_asked_and_every_parameter():
    entry = Entry("ind", "CVAE_ind", "cvae", COUNTS, metric="log_odds", redraw=True)
    settings = describe_settings(entry, 7, fit_estimator(entry, X, GRAPH, Run(7)))
    assert settings["parameters"] == COUNTS
    assert (settings["metric"], settings["redraw"], settings["graph_features"]) == ("log_odds", True, False)
    assert settings["all_parameters"]["random_state"] == 7
    assert settings["all_parameters"]["tau"] == 0.99
    assert settings["n_steps"] == 6
    assert settings["all_parameters"] == all_parameters(entry, 7)


def test_settings_of_baselines_hold_their_defaults():
    sage = describe_settings(Entry("sage", "GraphSAGE", "graph_sage", {"n_components": 5, "n_steps": 7}), 4)
    expected = {"n_components": 5, "n_steps": 7, "hidden": 300, "n_negatives": 20, "edge_batch": 4096, "seed": 4}
    assert sage["parameters"] == {"n_components": 5, "n_steps": 7}
    assert {name: sage["all_parameters"][name] for name in expected} == expected
    assert "on_step" not in sage["all_parameters"]
    lsa = all_parameters(Entry("lsa", "LSA", "principal_components", {"n_components": 5, "center": False}), 0)
    assert lsa == {"n_components": 5, "weighting": "raw", "center": False, "seed": 0}
    assert all_parameters(Entry("degree", "degree", "degree"), 0) == {}
