from dataclasses import replace

import numpy as np
import pytest

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments import links
from corrvae.experiments.outcomes import Run
from corrvae.experiments.recipes import Entry
from corrvae.graphs import EdgeSplit, split_edges
from corrvae.tasks import adamic_adar_scores, embedding_scores, rank_links, rank_pairs, score_links
from support.experiments import COUNTS, PAIRWISE, WORLD

MODELS = {
    "vae": Entry("vae", "VAE", "vae", COUNTS),
    "ind": Entry("ind", "CVAE_ind", "cvae", COUNTS),
    "corr": Entry("corr", "CVAE_corr", "cvae", {**COUNTS, **PAIRWISE}),
    "ind+graph": Entry("ind+graph", "CVAE_ind", "cvae", COUNTS, graph_features=True),
    "lsa": Entry("lsa", "LSA", "principal_components", {"n_components": 3, "center": False}, "cosine"),
    "sage": Entry("sage", "GraphSAGE", "graph_sage", {"n_components": 2, "hidden": 4, "n_steps": 3}, "mean_distance"),
    "vgae": Entry("vgae", "VGAE", "variational_graph", {"n_components": 2, "hidden": 4, "n_steps": 3}, "inner_product"),
}


@pytest.fixture
def embeddings(monkeypatch):
    """Every embedding that is learned from here on, and what it was learned from."""
    learned = []
    for name, attribute in (("fit_estimator", "embedding_"), ("embed", "embedding")):
        learn = getattr(links, name)

        def spy(entry, X, graph, run, learn=learn, attribute=attribute):
            found = learn(entry, X, graph, run)
            learned.append(getattr(found, attribute))
            return found

        monkeypatch.setattr(links, name, spy)
    return learned


@pytest.mark.parametrize("model", MODELS)
def test_held_out_edges_do_not_touch_training(model, embeddings):
    if model in ("sage", "vgae"):
        pytest.importorskip("torch_geometric")
    data = links.load(WORLD, 0)
    train, everyone = data.split.train, np.arange(data.split.train.n_vertices)
    # quite different edges are held out: none of them, nor of those before, is in the training graph
    known = set(map(tuple, np.concatenate([train.edges, data.split.test, data.split.validation]).tolist()))
    free = np.array([(i, j) for i in everyone for j in everyone if i < j and (i, j) not in known])
    chosen = np.random.default_rng(0).permutation(len(free))
    others = EdgeSplit(train, free[np.sort(chosen[:20])], free[np.sort(chosen[20:90])])
    outcomes = [links.judge(MODELS[model], replace(data, split=split), WORLD, Run(0)) for split in (data.split, others)]
    assert np.array_equal(*embeddings)
    assert outcomes[0].history == outcomes[1].history
    assert outcomes[0].scores != outcomes[1].scores


def test_training_edges_do_touch_training(embeddings):
    data = links.load(WORLD, 0)
    fewer = CorrelationGraph(data.split.train.edges[5:], data.split.train.n_vertices)
    for train in (data.split.train, fewer):
        links.judge(MODELS["ind"], replace(data, split=replace(data.split, train=train)), WORLD, Run(0))
    assert not np.array_equal(*embeddings)


def test_ranks_of_an_independent_model_are_those_of_its_embedding():
    data = links.load(WORLD, 0)
    model = CorrelatedVAE(**COUNTS, random_state=0).fit(data.features, graph=data.split.train)
    found = links.rank_by_model(model, "expected_distance", data.split, "test")
    expected = rank_links(embedding_scores(model.embedding_, model.stddev_), data.split)
    for name in ("vertices", "others", "ranks", "above", "candidates"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.parametrize("metric", ["expected_distance", "log_odds"])
@pytest.mark.parametrize("posterior", ["independent", "pairwise"])
def test_ranks_are_exact_also_where_points_are_equal(metric, posterior):
    generator = np.random.default_rng(1)
    X = np.repeat(generator.poisson(0.8, (12, 7)), 3, axis=0).astype(np.float32) + np.eye(1, 7, dtype=np.float32)
    pairs = np.unique(np.sort(generator.integers(0, 36, (150, 2)), axis=1), axis=0)
    split = split_edges(CorrelationGraph(pairs[pairs[:, 0] != pairs[:, 1]], 36), test=0.2, random_state=0)
    settings = {**COUNTS, "posterior": posterior, "pair_hidden": (5,)}
    model = CorrelatedVAE(**settings, random_state=0).fit(X, graph=split.train)
    everything = np.array([(i, j) for i in range(36) for j in range(36) if i != j])
    scores = np.zeros((36, 36))
    scores[everything[:, 0], everything[:, 1]] = model.score_pairs(everything, metric=metric).scores
    sign = 1.0 if metric == "log_odds" else -1.0
    for part, held in (("test", split.test), ("validation", split.validation)):
        found = links.rank_by_model(model, metric, split, part)
        expected = rank_pairs(lambda rows: sign * scores[rows], held, 36, known=split.train)
        for name in ("vertices", "others", "ranks", "above", "candidates"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), (part, name)


def test_both_parts_are_scored():
    outcome = links.run(Entry("adamic", "Adamic-Adar", "adamic_adar"), WORLD, Run(5))
    split = links.load(WORLD, 5).split
    for part, prefix in (("test", ""), ("validation", "validation_")):
        expected = score_links(rank_links(adamic_adar_scores(split.train), split, part))
        assert outcome.scores[f"{prefix}ncrr"] == expected.ncrr
        assert outcome.scores[f"{prefix}auc"] == expected.auc
    assert (outcome.history, outcome.sketches) == (None, None)
    assert outcome.data["test_edges"] == len(split.test)


def test_graph_features_stand_beside_the_ratings(monkeypatch):
    shapes, fit = [], links.fit_estimator
    monkeypatch.setattr(links, "fit_estimator", lambda e, X, *rest: shapes.append(X.shape) or fit(e, X, *rest))
    for model in ("ind", "ind+graph"):
        outcome = links.run(MODELS[model], WORLD, Run(0))
        assert outcome.sketches.metric == "expected squared distance"
        assert len(outcome.sketches.linked) == outcome.data["test_edges"]
    assert shapes == [(60, 30), (60, 90)]


def test_epinions_is_read_by_its_rows(tmp_path):
    (tmp_path / "ratings_data.txt").write_text(
        "".join(f"{user} {product} 4\n" for user in (5, 9, 2) for product in (1, 2))
    )
    trust = [(5, 9), (9, 5), (2, 9), (9, 2)]
    (tmp_path / "trust_data.txt").write_text("".join(f" {a} {b} 1\n" for a, b in trust))
    data = links.load({"name": str(tmp_path), "min_ratings": 3}, 0)
    assert data.name == "Epinions"
    assert data.split.train.ids.tolist() == [0, 1, 2]
    assert data.split.train.n_edges + len(data.split.test) + len(data.split.validation) == 2


def test_each_seed_holds_out_other_edges(tmp_path):
    """Of data that are read, which are the same for every seed."""
    users = range(1, 31)
    (tmp_path / "ratings_data.txt").write_text("".join(f"{user} 1 4\n" for user in users))
    pairs = [(a, b) for a in users for b in users if a != b and (a + b) % 3 == 0]
    (tmp_path / "trust_data.txt").write_text("".join(f" {a} {b} 1\n" for a, b in pairs))
    settings = {"name": str(tmp_path), "min_ratings": 3}
    splits = [links.load(settings, seed).split for seed in (0, 1, 0)]
    held = [{tuple(edge) for edge in split.test.tolist()} for split in splits]
    assert held[0] == held[2]
    assert held[0] != held[1]


def test_the_fingerprint_covers_edges_and_split():
    data = links.load(WORLD, 0)
    train, split = data.split.train, data.split
    fewer = CorrelationGraph(train.edges[1:], train.n_vertices)
    variants = (
        split,
        replace(split, train=fewer),
        replace(split, test=split.test[1:]),
        replace(split, validation=split.validation[1:]),
        replace(split, test=split.validation, validation=split.test),
    )
    entry = Entry("degree", "degree", "degree")
    codes = {links.judge(entry, replace(data, split=v), WORLD, Run(0)).data["fingerprint"] for v in variants}
    assert len(codes) == len(variants)
