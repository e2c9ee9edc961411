from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.datasets import locate
from corrvae.errors import DataFileError
from corrvae.experiments.baselines import neural_common_neighbors
from corrvae.experiments.links import (
    HEURISTICS,
    EdgeRanks,
    area_under_curve,
    load,
    ncrr,
    rank_edges,
    rank_rows,
    row_scores,
    run,
    score_links,
    score_rows,
)
from corrvae.experiments.models import Run, point_posterior
from corrvae.experiments.recipes import Entry
from corrvae.graphs import split_edges
from corrvae.scoring import make_metric, score_matrix
from support.experiments import COUNTS, PAIRWISE, WORLD

RING = CorrelationGraph.from_edges([(i, (i + k) % 24) for i in range(24) for k in (1, 2)])
EMPTY = np.empty((0, 2), np.int64)


def literal_ncrr(scores, held, train):
    """NCRR of a matrix of scores (larger is better), vertex by vertex in exact fractions; ranks too."""
    count = len(scores)
    known = train.to_scipy().toarray() > 0
    partners = {}
    for i, j in held.tolist():
        partners.setdefault(i, []).append(j)
        partners.setdefault(j, []).append(i)
    ranks, ncrrs = {}, []
    for i, others in partners.items():
        candidates = [c for c in range(count) if c != i and not known[i, c]]
        for j in others:
            ranks[i, j] = 1 + sum(scores[i, c] >= scores[i, j] for c in candidates if c != j)
        crr = sum(Fraction(1, ranks[i, j]) for j in others)
        ncrrs.append(crr / sum(Fraction(1, k) for k in range(1, len(others) + 1)))
    return float(sum(ncrrs) / len(ncrrs)), ranks


@given(st.integers(0, 2**16))
def test_ncrr_and_auc_are_those_of_literal_code(seed):
    split = split_edges(RING, test=0.2, validation=0.2, random_state=seed)
    # integers on a line: many equal points, hence many ties
    posterior = point_posterior(np.random.default_rng(seed).integers(0, 9, (24, 1)).astype(np.float32))
    metric = make_metric("mean_distance")
    scores = -score_matrix(posterior, posterior, metric)
    for held, known in ((split.test, split.known), (split.validation, split.train)):
        found = score_links(posterior, metric, held, known)
        expected, ranks = literal_ncrr(scores, held, known)
        assert found["ncrr"] == pytest.approx(expected)
        every = np.array(list(ranks.values()))
        assert found["mrr"] == pytest.approx(np.mean(1.0 / every))
        assert found["hits_10"] == pytest.approx(np.mean(every <= 10))


@pytest.mark.parametrize("features", [None, np.tile(np.eye(12), (2, 1))], ids=["alone", "with features"])
@pytest.mark.parametrize("method", HEURISTICS)
def test_ranks_of_heuristics_are_those_of_literal_code(method, features):
    split = split_edges(RING, test=0.2, validation=0.2, random_state=0)
    score = row_scores(method, split.train, features)
    scores = score(np.arange(24)).astype(np.float32)
    if features is not None:
        alone = row_scores(method, split.train)(np.arange(24)) + 1e-9 * split.train.degrees
        assert np.allclose(scores, alone * (1.0 + features @ features.T))
    found = rank_rows(score, split.test, split.train)
    known = split.train.to_scipy().toarray() > 0
    _, ranks = literal_ncrr(scores, split.test, split.train)
    aucs = []
    for k, (i, j) in enumerate(zip(found.vertices.tolist(), found.others.tolist(), strict=True)):
        candidates = [c for c in range(24) if c != i and not known[i, c]]
        assert found.ranks[k] == ranks[i, j]
        assert found.above[k] == sum(scores[i, c] > scores[i, j] for c in candidates)
        assert found.candidates[k] == len(candidates)
        unrelated = [c for c in candidates if (i, c) not in ranks]
        labels = [1] + [0] * len(unrelated)
        aucs.append(roc_auc_score(labels, [scores[i, j], *(scores[i, c] for c in unrelated)]))
    assert area_under_curve(found) == pytest.approx(np.mean(aucs))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=20))
def test_ncrr_is_that_of_its_definition(pairs):
    expected = []
    for vertex in {vertex for vertex, _ in pairs}:
        mine = [rank for other, rank in pairs if other == vertex]
        crr = sum(Fraction(1, rank) for rank in mine)
        expected.append(crr / sum(Fraction(1, k) for k in range(1, len(mine) + 1)))
    vertices, ranks = np.array(pairs).T
    assert ncrr(ranks, vertices) == pytest.approx(float(sum(expected) / len(expected)))


@given(st.integers(1, 4), st.integers(0, 2**16))
def test_auc_is_the_mean_of_mann_whitney(n_vertices, seed):
    generator = np.random.default_rng(seed)
    columns, expected = [], []
    for vertex in range(n_vertices):
        related = generator.integers(0, 5, generator.integers(1, 5))
        unrelated = generator.integers(0, 5, generator.integers(1, 6))
        candidates = np.concatenate([related, unrelated])
        for score in related:
            columns.append([vertex, 0, (candidates >= score).sum(), (candidates > score).sum(), len(candidates)])
            wins = mannwhitneyu([score], unrelated, method="asymptotic").statistic
            expected.append(wins / len(unrelated))
    generator.shuffle(columns)
    vertices, others, ranks, above, candidates = np.array(columns).T.copy()
    assert area_under_curve(EdgeRanks(vertices, others, ranks, above, candidates)) == pytest.approx(np.mean(expected))


def test_a_perfect_scorer_has_one_and_a_constant_one_half_of_the_area():
    whole = split_edges(RING, test=0.2, validation=0.0, random_state=0)
    constant = score_rows(row_scores("common_neighbors", CorrelationGraph(EMPTY, 24)), whole.test, whole.known)
    assert constant["auc"] == pytest.approx(0.5)  # no neighbours at all: every score is 0
    assert constant["ncrr"] < 0.1
    places = np.array([[0.0], [1.0], [9.0], [10.0]])
    held, known = np.array([[0, 1], [2, 3]]), CorrelationGraph(EMPTY, 4)
    best = score_links(point_posterior(places), make_metric("mean_distance"), held, known)
    assert (best["ncrr"], best["auc"], best["hits_1"]) == (1.0, 1.0, 1.0)


def test_training_edges_are_not_ranked():
    split = split_edges(RING, test=0.2, validation=0.2, random_state=0)
    with pytest.raises(ValueError, match="is a training edge"):
        rank_edges(point_posterior(np.eye(24)), make_metric("cosine"), split.train.edges, split.train)


@pytest.mark.parametrize("family", ["independent", "pairwise"])
def test_held_out_edges_touch_nothing_in_training(family):
    """The model trained on a split is, to the bit, that of a world in which held-out edges never were."""
    split = split_edges(RING, test=0.2, validation=0.2, random_state=0)
    held = np.concatenate([split.test, split.validation])
    adjacency = split.train.to_scipy().toarray()
    assert not adjacency[held[:, 0], held[:, 1]].any()
    assert not adjacency[held[:, 1], held[:, 0]].any()
    never = CorrelationGraph.from_edges(split.train.edges.tolist(), n_vertices=24)
    features = np.random.default_rng(0).standard_normal((24, 6)).astype(np.float32)
    embeddings = [
        CorrelatedVAE(2, family=family, hidden=(8,), max_steps=5, random_state=0).fit(features, graph=graph).embedding_
        for graph in (split.train, never)
    ]
    assert np.array_equal(*embeddings)


@pytest.mark.parametrize("graph_features", [False, True])
@pytest.mark.parametrize("parameters", [COUNTS, {**COUNTS, **PAIRWISE}], ids=["ind", "corr"])
def test_models_see_the_training_graph_alone(parameters, graph_features, monkeypatch):
    seen = []
    fit = CorrelatedVAE.fit

    def watched(self, X, **options):
        seen.append((X.shape, options["graph"]))
        return fit(self, X, **options)

    monkeypatch.setattr(CorrelatedVAE, "fit", watched)
    outcome = run(Entry("m", "M", "cvae", parameters, graph_features=graph_features), WORLD, Run(seed=1))
    _, features, parts = load(WORLD, 1)
    # settings are chosen on the validation edges; then these are given back, and the model is trained once more
    assert [graph for _, graph in seen] == [parts["validation"].known, parts["test"].known]
    assert parts["test"].known.n_edges == parts["validation"].known.n_edges + len(parts["validation"].held)
    assert {shape for shape, _ in seen} == {(60, 30 + 60 * graph_features)}
    assert outcome.data["known_edges"] + outcome.data["test_edges"] > 100
    assert 0 < outcome.scores["ncrr"] < 1
    assert outcome.scores["validation_ncrr"] != outcome.scores["ncrr"]
    assert outcome.scores["n_vertices"] == 60
    assert features.shape == (60, 30)


def test_networks_of_pairs_are_trained_for_each_part():
    settings = {"width": 4, "n_steps": 3, "edge_batch": 8}
    outcome = run(Entry("ncn", "NCN", "neural_common_neighbors", settings), WORLD, Run(seed=1))
    _, features, parts = load(WORLD, 1)
    for prefix, part in (("validation_", parts["validation"]), ("", parts["test"])):
        score = neural_common_neighbors(features, part.known, **settings, seed=1)
        expected = score_rows(score, part.held, part.known)
        assert {name: outcome.scores[prefix + name] for name in expected} == expected
    assert outcome.history["step"] == [1.0, 2.0, 3.0]


def test_the_first_editions_protocol_trains_once_without_the_validation_edges(monkeypatch):
    seen, fit = [], CorrelatedVAE.fit
    monkeypatch.setattr(CorrelatedVAE, "fit", lambda self, X, **o: seen.append(o["graph"]) or fit(self, X, **o))
    run(Entry("m", "M", "cvae", COUNTS), {**WORLD, "protocol": "first edition"}, Run(seed=1))
    _, _, parts = load({**WORLD, "protocol": "first edition"}, 1)
    assert seen == [parts["test"].known] == [parts["validation"].known]
    assert len(parts["validation"].held) == round(0.05 * (seen[0].n_edges + len(parts["validation"].held)))
    # the test edges are the same under both protocols
    assert np.array_equal(parts["test"].held, load(WORLD, 1)[2]["test"].held)


def test_the_best_heuristic_is_that_of_the_validation_edges():
    _, features, parts = load(WORLD, 2)
    outcome = run(Entry("best", "best", "best_heuristic"), WORLD, Run(seed=2))
    validation, test = parts["validation"], parts["test"]
    tried = {}
    for method, grid in HEURISTICS.items():
        for parameters in grid if method != "degree" else ():
            score = row_scores(method, validation.known, features, **parameters)
            tried[method, *parameters.items()] = score_rows(score, validation.held, validation.known)["ncrr"]
    assert outcome.scores["validation_ncrr"] == max(tried.values())
    score = row_scores(known=test.known, features=features, **outcome.settings["chosen"])
    assert outcome.scores["ncrr"] == score_rows(score, test.held, test.known)["ncrr"]


def test_the_split_of_a_seed_is_always_the_same():
    (_, X, one), (_, Y, two), (_, _, other) = load(WORLD, 3), load(WORLD, 3), load(WORLD, 4)
    assert (X != Y).nnz == 0
    for part in ("validation", "test"):
        assert np.array_equal(one[part].held, two[part].held)
        assert one[part].known == two[part].known
    assert not np.array_equal(one["test"].held, other["test"].held)


def test_degree_on_the_published_epinions():
    try:
        locate("epinions")
    except DataFileError:
        pytest.skip("epinions is not in the data folder")
    _, _, parts = load({"name": "epinions", "min_ratings": 100, "protocol": "first edition"}, 0)
    test = parts["test"]
    found = score_rows(row_scores("degree", test.known), test.held, test.known)
    assert found["n_vertices"] == 16_101
    assert found["ncrr"] == pytest.approx(0.012929992511610174, abs=1e-6)  # as recorded by the first edition
