import numpy as np
import pytest

from corrvae import CorrelatedVAE
from corrvae.datasets import halve_users
from corrvae.experiments.matching import SIZE_AND_OVERLAP, load, run, score_matching
from corrvae.experiments.models import Run, point_posterior
from corrvae.experiments.recipes import Entry
from corrvae.experiments.sources import data_files, small_world
from corrvae.scoring import make_metric, score_matrix
from support.experiments import COUNTS, PAIRWISE, WORLD


@pytest.mark.parametrize("protocol", ["random-halves", "two-catalogues"])
@pytest.mark.parametrize("metric", ["mean_distance", "log_odds", "cosine"])
def test_scores_are_those_of_literal_code(metric, protocol):
    generator = np.random.default_rng(0)
    posterior = point_posterior(generator.normal(size=(8, 2))[generator.integers(0, 8, 20)])  # some are equal
    users = halve_users(generator.random((10, 12)) < 0.5, protocol=protocol, random_state=0)
    items = users.features.toarray()
    metric = make_metric(metric)
    scores = score_matrix(posterior, posterior, metric) * (1 if metric.larger_is_better else -1)
    ranks, refused = [], []
    for i in range(20):
        j = i ^ 1  # the other half
        others = [c for c in range(20) if c not in (i, j) and (protocol == "random-halves" or c % 2 == j % 2)]
        better = [c for c in others if scores[i, c] >= scores[i, j]]
        ranks.append(1 + len(better))
        refused.append(1 + sum(not (items[i] * items[c]).any() for c in better))
    found = score_matching(posterior, metric, users)
    assert found["reciprocal_rank"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert found["hits_1"] == np.mean([rank == 1 for rank in ranks])
    assert found["hits_10"] == np.mean([rank <= 10 for rank in ranks])
    assert found["n_pairs"] == 10
    if protocol == "random-halves":
        assert np.mean(refused) < np.mean(ranks)
        assert found["overlap_refused"] == pytest.approx(np.mean([1 / rank for rank in refused]))
    else:
        assert "overlap_refused" not in found


def test_ties_count_against_the_method():
    users = halve_users(np.ones((10, 4)), random_state=0)
    found = score_matching(point_posterior(np.zeros((20, 1))), make_metric("mean_distance"), users)
    assert found["reciprocal_rank"] == pytest.approx(1 / 19)
    assert found["hits_10"] == 0.0


def test_the_rule_that_learns_nothing_keeps_disjoint_candidates_of_the_same_size():
    halves = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [1, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0]], np.float32)
    points = point_posterior(halves)
    expected = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    assert score_matrix(points, points, SIZE_AND_OVERLAP).tolist() == expected


@pytest.mark.parametrize("protocol", ["random-halves", "two-catalogues"])
@pytest.mark.parametrize(
    "entry",
    [
        Entry("plda", "PLDA", "halves_plda", {"n_components": 3, "ridge": 0.1}, "log_odds"),
        Entry("rule", "rule", "size_and_overlap"),
    ],
    ids=lambda entry: entry.model,
)
def test_baselines_run_from_end_to_end(entry, protocol):
    outcome = run(entry, {**WORLD, "protocol": protocol}, Run(seed=0))
    assert ("overlap_refused" in outcome.scores) == (protocol == "random-halves")
    assert outcome.scores["reciprocal_rank"] > 0.2  # of six pairs
    assert outcome.settings["method"] == entry.method


def test_raw_features_of_halves_match_nothing():
    _, parts = load(WORLD, 0)
    features = parts["train"].features.toarray()
    # halves of a user share no item, so by the items in common the other half comes last
    found = score_matching(point_posterior(features), make_metric("inner_product"), parts["train"])
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


def test_files_of_an_archive_are_named_with_size_and_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    (tmp_path / "epinions.zip").write_bytes(b"abc")
    code = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert data_files("epinions") == {"epinions.zip": f"3 bytes, {code}"}
    assert data_files("tree") == {}
