import numpy as np
import pytest

from corrvae import CorrelatedVAE
from corrvae.experiments.matching import load, run, score_matching
from corrvae.experiments.models import Run, point_posterior
from corrvae.experiments.recipes import Entry
from corrvae.experiments.sources import data_files, small_world
from corrvae.scoring import make_metric, score_matrix
from support.experiments import COUNTS, PAIRWISE, WORLD


@pytest.mark.parametrize("metric", ["mean_distance", "log_odds", "cosine"])
def test_scores_are_those_of_literal_code(metric):
    generator = np.random.default_rng(0)
    posterior = point_posterior(generator.normal(size=(8, 2))[generator.integers(0, 8, 20)])  # some are equal
    metric = make_metric(metric)
    scores = score_matrix(posterior, posterior, metric) * (1 if metric.larger_is_better else -1)
    ranks = []
    for i in range(20):
        j = i ^ 1  # the other half
        ranks.append(1 + sum(scores[i, c] >= scores[i, j] for c in range(20) if c not in (i, j)))
    found = score_matching(posterior, metric)
    assert found["reciprocal_rank"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert found["hits_1"] == np.mean([rank == 1 for rank in ranks])
    assert found["hits_10"] == np.mean([rank <= 10 for rank in ranks])
    assert found["n_pairs"] == 10


def test_ties_count_against_the_method():
    found = score_matching(point_posterior(np.zeros((20, 1))), make_metric("mean_distance"))
    assert found["reciprocal_rank"] == pytest.approx(1 / 19)
    assert found["hits_10"] == 0.0


def test_raw_features_of_halves_match_nothing():
    _, parts = load(WORLD, 0)
    features = parts["train"].features.toarray()
    # halves of a user share no item, so by the items in common the other half comes last
    found = score_matching(point_posterior(features), make_metric("inner_product"))
    assert found["reciprocal_rank"] == pytest.approx(1 / (len(features) - 1))


def test_parts_share_no_user_and_halves_no_item():
    _, parts = load(WORLD, 0)
    items, _ = small_world(60, 30, random_state=np.random.default_rng(0))
    together = sum(part.n_users for part in parts.values())
    assert together == 60
    for part in parts.values():
        first, second = part.features[::2], part.features[1::2]
        assert first.multiply(second).nnz == 0
        assert part.features.sum() == part.items.sum()
    assert sum(part.items.sum() for part in parts.values()) == items.sum()


@pytest.mark.parametrize("parameters", [COUNTS, {**COUNTS, **PAIRWISE}], ids=["ind", "corr"])
def test_models_see_training_users_alone(parameters, monkeypatch):
    seen = []
    fit = CorrelatedVAE.fit

    def watched(self, X, **options):
        seen.append((X, options["graph"], options["augment"]))
        return fit(self, X, **options)

    monkeypatch.setattr(CorrelatedVAE, "fit", watched)
    outcome = run(Entry("m", "M", "cvae", parameters, metric="log_odds", augment=True), WORLD, Run(seed=2))
    ((X, graph, augment),) = seen
    _, parts = load(WORLD, 2)
    assert (parts["train"].features != X).nnz == 0
    assert graph == parts["train"].graph
    assert augment.__self__.n_users == parts["train"].n_users
    assert outcome.scores["n_pairs"] == parts["test"].n_users == outcome.data["test_users"]
    assert outcome.scores["validation_n_pairs"] == parts["validation"].n_users
    assert outcome.sketches.metric == "link log-odds"


def test_what_cannot_embed_new_users_raises():
    pytest.importorskip("torch_geometric")
    settings = {"n_components": 2, "hidden": 4, "n_steps": 1}
    with pytest.raises(ValueError, match="cannot embed rows that it was not trained on"):
        run(Entry("sage", "GraphSAGE", "graph_sage", settings, "mean_distance"), WORLD, Run(seed=0))


def test_small_worlds():
    items, graph = small_world(200, 60, random_state=0)
    assert (items.data == 1).all()
    sizes = np.diff(items.indptr)
    assert (sizes.min() >= 12, sizes.max() <= 30) == (True, True)
    assert graph.degrees.min() >= 1
    again, same = small_world(200, 60, random_state=0)
    assert (items != again).nnz == 0
    assert graph == same
    with pytest.raises(ValueError, match="needs 10 users and 24 items"):
        small_world(5, 60)


def test_files_of_an_archive_are_named_with_size_and_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    (tmp_path / "epinions.zip").write_bytes(b"abc")
    code = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert data_files("epinions") == {"epinions.zip": f"3 bytes, {code}"}
    assert data_files("tree") == {}
