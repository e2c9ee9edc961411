import numpy as np
import pytest

from corrvae.datasets import tree
from corrvae.experiments import clustering
from corrvae.experiments.outcomes import Run
from corrvae.experiments.recipes import Entry
from corrvae.tasks import embedding_distances, score_clustering
from support.experiments import BITS, PAIRWISE, TREE

DATA = tree(60, 200, n_components=10, random_state=3)


def test_the_true_latents_go_through_the_same_pipeline():
    outcome = clustering.run(Entry("truth", "true z", "latents", metric="mean_distance"), TREE, Run(3))
    expected = score_clustering(embedding_distances(DATA.latents), DATA.labels)
    assert outcome.scores["nmi"] == expected.nmi
    assert outcome.scores["unit_nmi"] == expected.unit_nmi
    assert outcome.history is None
    assert outcome.data["name"] == "synthetic tree, 60 points"
    assert outcome.data["settings"] == TREE


def test_points_differ_so_that_the_cut_is_one():
    assert len(np.unique(DATA.features, axis=0)) == 60


@pytest.mark.parametrize("changes", [{}, PAIRWISE])
def test_a_model_is_scored_by_its_expected_distances(changes, monkeypatch):
    fitted, fit = [], clustering.fit_estimator
    monkeypatch.setattr(clustering, "fit_estimator", lambda *given: fitted.append(fit(*given)) or fitted[0])
    outcome = clustering.run(Entry("m", "m", "cvae", {**BITS, **changes}), TREE, Run(3))
    (model,) = fitted
    pairs = np.array([(i, j) for i in range(60) for j in range(60) if i != j])
    distances = np.zeros((60, 60))
    distances[pairs[:, 0], pairs[:, 1]] = model.score_pairs(pairs).scores
    expected = score_clustering(lambda rows: distances[rows], DATA.labels)
    assert outcome.scores["nmi"] == pytest.approx(expected.nmi, abs=1e-6)
    assert outcome.settings["all_parameters"]["random_state"] == 3
    assert outcome.sketches.groups == DATA.labels.tolist()
    assert len(outcome.sketches.edges) == 59
    assert outcome.sketches.weight_counts[-1] == 59
    assert "edge" in outcome.history


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("principal_components", {"n_components": 2}),
        ("graph_sage", {"n_components": 2, "hidden": 4, "n_steps": 2, "edge_batch": 8, "n_negatives": 2}),
        ("variational_graph", {"n_components": 2, "hidden": 4, "n_steps": 2}),
    ],
)
def test_baselines_are_scored(method, settings):
    if method != "principal_components":
        pytest.importorskip("torch_geometric")
    outcome = clustering.run(Entry("m", "m", method, settings, "mean_distance"), TREE, Run(0))
    assert 0 <= outcome.scores["nmi"] <= 1
    assert outcome.sketches.metric == "squared distance"


def test_labels_are_not_trained_on_and_scores_are_no_distances():
    with pytest.raises(ValueError, match="clustering needs distances, which log_odds does not give"):
        clustering.run(Entry("m", "m", "cvae", BITS, metric="log_odds"), TREE, Run(0))


def test_seeds_change_the_tree():
    entry = Entry("truth", "true z", "latents", metric="mean_distance")
    first, second = (clustering.run(entry, TREE, Run(seed)).data["fingerprint"] for seed in (0, 1))
    assert first != second
