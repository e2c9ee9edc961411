import signal

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise
from corrvae.experiments import baselines
from corrvae.experiments.baselines import (
    _adjacency,
    _CommonNeighbors,
    graph_sage,
    neural_common_neighbors,
    principal_components,
    variational_graph,
)
from corrvae.experiments.clustering import run as cluster
from corrvae.experiments.models import Run, thin, train_entry
from corrvae.experiments.recipes import Entry
from support.experiments import BITS, COUNTS, PAIRWISE, TREE

X = np.random.default_rng(0).poisson(0.6, (40, 9)).astype(np.float32) + np.eye(40, 9, dtype=np.float32)
GRAPH = CorrelationGraph.from_edges([(i, (i + 1) % 40) for i in range(40)])


def test_the_estimator_is_the_one_of_the_recipe():
    entry = Entry("corr", "CVAE_corr", "cvae", {**COUNTS, **PAIRWISE, "family__gamma_kl": 0.0, "family__gamma_mi": 2.0})
    found = train_entry(entry, X, GRAPH, Run(4)).posterior(None)
    family = Pairwise(hidden=(6,), gamma_kl=0.0, gamma_mi=2.0)
    expected = CorrelatedVAE(**COUNTS, family=family, device="cpu", random_state=4).fit(X, graph=GRAPH)
    assert np.array_equal(found.mean, expected.embedding_)
    assert np.array_equal(found.stddev, expected.stddev_)
    assert found.is_correlated


def test_a_vae_does_not_see_the_graph():
    trained = train_entry(Entry("vae", "VAE", "vae", COUNTS), X, GRAPH, Run(0))
    expected = CorrelatedVAE(**COUNTS, device="cpu", random_state=0).fit(X)
    assert np.array_equal(trained.posterior(None).mean, expected.embedding_)
    assert np.array_equal(trained.posterior(X[:3]).mean, expected.transform(X[:3]))


@pytest.mark.parametrize("asked", [True, False])
def test_rows_are_drawn_anew_only_if_asked(asked):
    drawn = []

    def augment(rows, generator):
        drawn.append(rows)
        return X[rows]

    train_entry(Entry("ind", "CVAE_ind", "cvae", COUNTS, augment=asked), X, GRAPH, Run(0), augment=augment)
    assert bool(drawn) == asked


def test_an_interrupted_training_resumes(tmp_path):
    entry = Entry("ind", "CVAE_ind", "cvae", COUNTS, augment=True)

    drawn = []

    def press(rows, generator):
        drawn.append(rows)
        if len(drawn) == 3:
            signal.raise_signal(signal.SIGINT)
        return X[rows]

    with pytest.raises(KeyboardInterrupt):
        train_entry(entry, X, GRAPH, Run(0, tmp_path / "saved"), augment=press)
    run = Run(0, tmp_path / "saved")
    resumed = train_entry(entry, X, GRAPH, run, augment=press)
    assert len(drawn) in (6, 7)
    assert run.earlier_seconds > 0
    whole = train_entry(entry, X, GRAPH, Run(0), augment=press)
    assert np.array_equal(resumed.posterior(None).mean, whole.posterior(None).mean)


def test_settings_and_history_hold_all_that_was_trained():
    entry = Entry("corr", "CVAE_corr", "cvae", {**COUNTS, **PAIRWISE}, metric="log_odds", augment=True)
    trained = train_entry(entry, X, GRAPH, Run(7))
    settings = trained.settings
    assert settings["parameters"] == {**COUNTS, **PAIRWISE}
    assert (settings["metric"], settings["augment"], settings["graph_features"]) == ("log_odds", True, False)
    every = settings["all_parameters"]
    assert (every["random_state"], every["tau"], every["family"], every["family__gamma_mi"]) == (
        7,
        "auto",
        "pairwise",
        1.0,
    )
    assert settings["n_steps"] == 6
    assert trained.history["step"][-1] == 6.0
    assert {"reconstruction", "singleton", "edge", "non_edge", "total"} <= set(trained.history)


def test_long_histories_keep_both_ends():
    long = thin({"step": [float(step) for step in range(5000)], "total": [1 / 3] * 5000})
    assert len(long["step"]) == len(long["total"]) == 200
    assert (long["step"][0], long["step"][-1], long["total"][0]) == (0.0, 4999.0, 0.333333)


def test_unknown_methods_raise():
    with pytest.raises(ValueError, match="'degree' is no method that embeds"):
        train_entry(Entry("degree", "degree", "degree"), X, GRAPH, Run(0))


@pytest.mark.parametrize("metric", ["expected_distance", "mean_distance"])
@pytest.mark.parametrize("parameters", [BITS, {**BITS, **PAIRWISE}], ids=["ind", "corr"])
def test_clustering_runs_from_end_to_end(parameters, metric):
    outcome = cluster(Entry("m", "M", "cvae", parameters, metric), TREE, Run(seed=0))
    assert set(outcome.scores) == {"nmi", "ari", "residual", "unit_nmi", "unit_ari", "unit_residual"}
    assert 0 <= outcome.scores["nmi"] <= 1
    assert outcome.data["edges"] == 59


# ---- baselines


def test_principal_components_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    matrix, new = generator.normal(size=(50, 6)), generator.normal(size=(4, 6))
    solver = PCA(2, svd_solver="full").fit(matrix)
    found = principal_components(matrix, 2), principal_components(matrix, 2, project=new)
    for ours, theirs in zip(found, (solver.transform(matrix), solver.transform(new)), strict=True):
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-4)


def test_weights_of_columns_are_inverse_frequencies():
    matrix = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    weighted = matrix * (np.log((1 + 3) / (1 + np.array([3, 1]))) + 1)
    found = principal_components(matrix, 2, weighting="idf", center=False)
    u, s, _ = np.linalg.svd(weighted, full_matrices=False)
    np.testing.assert_allclose(np.abs(found[:, 0]), np.abs(u[:, 0] * s[0]), rtol=1e-5)


@pytest.mark.parametrize("function", [graph_sage, variational_graph])
def test_networks_learn_the_graph_by_their_seed(function):
    pytest.importorskip("torch_geometric")
    settings = {"hidden": 8, "n_steps": 40, "learning_rate": 0.05}
    losses = []
    found = function(X, GRAPH, 4, **settings, seed=1, on_step=lambda step, loss: losses.append((step, loss)))
    assert found.shape == (40, 4)
    assert [step for step, _ in losses] == list(range(1, 41))
    assert losses[-1][1] < losses[0][1]
    assert np.array_equal(found, function(X, GRAPH, 4, **settings, seed=1))
    assert not np.allclose(found, function(X, GRAPH, 4, **settings, seed=2))


def test_networks_leave_torchs_own_seed_alone():
    pytest.importorskip("torch_geometric")
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    graph_sage(X, GRAPH, 2, hidden=4, n_steps=1)
    assert torch.equal(torch.rand(1), expected)


def test_a_graph_without_edges_raises():
    pytest.importorskip("torch_geometric")
    with pytest.raises(ValueError, match="learns from edges, and the graph has none"):
        graph_sage(X, CorrelationGraph(np.empty((0, 2), np.int64), 40), 2)


def test_baselines_are_trained_as_entries():
    pytest.importorskip("torch_geometric")
    entry = Entry("vgae", "VGAE", "variational_graph", {"n_components": 2, "hidden": 4, "n_steps": 3})
    trained = train_entry(entry, X, GRAPH, Run(5))
    expected = baselines.variational_graph(X, GRAPH, 2, hidden=4, n_steps=3, seed=5)
    assert np.array_equal(trained.posterior(None).mean, expected)
    assert trained.history["step"] == [1.0, 2.0, 3.0]


def test_scores_of_neural_common_neighbors_are_those_of_literal_code():
    torch.manual_seed(0)
    network = _CommonNeighbors(X, 5, 0.5).eval()
    chords = CorrelationGraph.from_edges([(i, (i + k) % 40) for i in range(30) for k in (1, 2, 5)])
    adjacency = _adjacency(chords.edges, 40)
    A = adjacency.toarray()
    weights = {name: value.detach().numpy().astype(np.float64) for name, value in network.named_parameters()}
    h = X @ weights["features.linear.weight"].reshape(9, 5) + weights["features.linear.bias"]
    for k in range(2):
        h = np.maximum(h, 0)
        around = h @ weights[f"around.{k}.weight"].T + weights[f"around.{k}.bias"]
        h = h @ weights[f"own.{k}.weight"].T + weights[f"own.{k}.bias"] + A @ around
        h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
    literal = np.empty((40, 40))
    for i in range(40):
        for j in range(40):
            common = h[(A[i] > 0) & (A[j] > 0)].sum(axis=0)
            joined = weights["join.weight"] @ np.concatenate([h[i] * h[j], common]) + weights["join.bias"]
            literal[i, j] = (weights["last.weight"] @ np.maximum(joined, 0) + weights["last.bias"]).item()
    with torch.no_grad():
        encoded = network.encode(adjacency)
        pairs = np.argwhere(np.ones((40, 40)))
        np.testing.assert_allclose(network(encoded, adjacency, pairs).numpy().reshape(40, 40), literal, atol=1e-4)
    rows = np.stack([network.row(encoded, adjacency, vertex) for vertex in range(40)])
    np.testing.assert_allclose(rows, literal, atol=1e-4)


def test_neural_common_neighbors_learn_without_the_edges_of_the_step(monkeypatch):
    seen, losses, encode, forward = [], [], _CommonNeighbors.encode, _CommonNeighbors.forward
    monkeypatch.setattr(_CommonNeighbors, "encode", lambda self, A: seen.append([A]) or encode(self, A))
    monkeypatch.setattr(_CommonNeighbors, "forward", lambda self, h, A, p: seen[-1].append(p) or forward(self, h, A, p))
    settings = {"n_steps": 30, "edge_batch": 20, "learning_rate": 0.03}
    score = neural_common_neighbors(X, GRAPH, 8, **settings, on_step=lambda step, loss: losses.append(loss))
    for adjacency, near, far in seen[:-1]:
        assert not adjacency.toarray()[near[:, 0], near[:, 1]].any()
        assert adjacency.sum() == 2 * (40 - len(np.unique(near, axis=0)))
        assert (len(near), len(far)) == (20, 80)
    assert seen[-1][0].sum() == 80  # all edges, to score with
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    again = neural_common_neighbors(X, GRAPH, 8, **settings)
    assert np.array_equal(score(np.array([3, 7])), again(np.array([3, 7])))
