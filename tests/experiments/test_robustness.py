import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from corrvae.experiments import reproduce as module
from corrvae.experiments.models import point_posterior
from corrvae.experiments.robustness import Labelled, add_edges, held_out_auc, label_accuracy, score_groups
from corrvae.experiments.running import perform
from corrvae.graphs import CorrelationGraph

PATH = CorrelationGraph(np.array([[i, i + 1] for i in range(49)]), 50)


def test_added_edges_are_new_and_marked():
    known = CorrelationGraph(PATH.edges[:40], 50)
    noisy, is_added = add_edges(known, 20, PATH, seed=3)
    assert is_added.sum() == 20
    assert noisy.edges[~is_added].tolist() == known.edges.tolist()
    given = set(map(tuple, PATH.edges.tolist()))
    assert not given & set(map(tuple, noisy.edges[is_added].tolist()))
    assert add_edges(known, 20, PATH, seed=3)[0].edges.tolist() == noisy.edges.tolist()
    assert add_edges(known, 0, PATH, seed=3)[0].edges.tolist() == known.edges.tolist()


def test_scores_are_those_of_a_plain_computation():
    generator = np.random.default_rng(0)
    points = generator.standard_normal((50, 3))
    held, others = PATH.edges[:9], generator.integers(50, size=(30, 2))
    lengths = [np.square(points[i] - points[j]).sum() for i, j in [*held, *others]]
    expected = roc_auc_score([0] * 9 + [1] * 30, lengths)
    assert held_out_auc(point_posterior(points), held, others, "mean_distance") == pytest.approx(expected)
    labels = (points[:, 0] > 0).astype(int)
    parts = np.repeat(["train", "validation", "test"], [30, 10, 10])
    assert label_accuracy(100 * points, labels, parts) == 1.0
    data = Labelled("points", points, PATH, labels, parts)
    assert score_groups(np.column_stack([100.0 * labels, labels]), data) == {"accuracy": 1.0, "nmi": pytest.approx(1.0)}
    assert score_groups(points, Labelled("points", points, PATH)) == {}
    drawn = Labelled("drawn", points, PATH, labels, latents=points @ generator.standard_normal((3, 2)))
    assert score_groups(points, drawn)["r2"] == pytest.approx(1.0)


def test_wrong_edges_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "run_in_process", lambda job, **_: perform(job))
    tally = module.reproduce("robustness", recipe="quick", models=["ind+adaptive"], out=tmp_path, quiet=True)
    (record,) = tally.records
    assert record.scores["found_50"] > 0.7
    assert {"auc_0", "nmi_10", "nmi_50", "r2_30"} <= record.scores.keys()
    assert "found_0" not in record.scores
