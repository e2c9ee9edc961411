from fractions import Fraction

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.datasets import epinions, locate
from corrvae.errors import DataFileError
from corrvae.experiments.links import (
    GRAPH_METRICS,
    EdgeRanks,
    area_under_curve,
    load,
    ncrr,
    rank_edges,
    run,
    score_links,
)
from corrvae.experiments.models import Run, point_posterior
from corrvae.experiments.recipes import Entry
from corrvae.graphs import EdgeSplit, split_edges
from corrvae.scoring import make_metric, score_matrix
from support.experiments import COUNTS, PAIRWISE, WORLD
from support.graphs import graphs

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
    found = score_links(posterior, metric, split)
    scores = -score_matrix(posterior, posterior, metric)
    for prefix, held in (("", split.test), ("validation_", split.validation)):
        expected, ranks = literal_ncrr(scores, held, split.train)
        assert found[f"{prefix}ncrr"] == pytest.approx(expected)
        every = np.array(list(ranks.values()))
        assert found[f"{prefix}mrr"] == pytest.approx(np.mean(1.0 / every))
        assert found[f"{prefix}hits_10"] == pytest.approx(np.mean(every <= 10))


@pytest.mark.parametrize("method", GRAPH_METRICS)
def test_ranks_of_the_graphs_own_scores_are_those_of_literal_code(method):
    split = split_edges(RING, test=0.2, validation=0.2, random_state=0)
    posterior, metric = GRAPH_METRICS[method](split.train)
    scores = score_matrix(posterior, posterior, metric)
    found = rank_edges(posterior, metric, split.test, split.train)
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


@given(graphs(max_vertices=10, min_vertices=2))
def test_scores_of_graphs_are_networkxs(graph):
    theirs = networkx.Graph(graph.edges.tolist())
    theirs.add_nodes_from(range(graph.n_vertices))
    degree, common, adamic = (score_matrix(p, p, m) for p, m in (make(graph) for make in GRAPH_METRICS.values()))
    for i in range(graph.n_vertices):
        for j in range(graph.n_vertices):
            if i != j:
                shared = list(networkx.common_neighbors(theirs, i, j))
                assert degree[i, j] == theirs.degree[j]
                assert common[i, j] == len(shared)
                assert adamic[i, j] == pytest.approx(sum(1 / np.log(theirs.degree[k]) for k in shared), rel=1e-6)


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


def test_an_auc_without_unrelated_candidates_raises():
    one = np.array([1])
    with pytest.raises(ValueError, match="every candidate is a held-out edge"):
        area_under_curve(EdgeRanks(one, one, one, one - 1, one))


def test_a_perfect_scorer_has_one_and_a_constant_one_half_of_the_area():
    whole = split_edges(RING, test=0.2, validation=0.0, random_state=0)
    posterior, metric = GRAPH_METRICS["common_neighbours"](CorrelationGraph(EMPTY, 24))
    constant = score_links(posterior, metric, whole)
    assert constant["auc"] == pytest.approx(0.5)  # no neighbours at all: every score is 0
    assert constant["ncrr"] < 0.1
    places = np.array([[0.0], [1.0], [9.0], [10.0]])
    split = EdgeSplit(CorrelationGraph(EMPTY, 4), EMPTY, np.array([[0, 1], [2, 3]]))
    best = score_links(point_posterior(places), make_metric("mean_distance"), split)
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
    ((shape, graph),) = seen
    _, features, split = load(WORLD, 1)
    assert graph == split.train
    assert shape == (60, 30 + 60 * graph_features)
    assert outcome.data["train_edges"] + outcome.data["test_edges"] + outcome.data["validation_edges"] > 100
    assert 0 < outcome.scores["ncrr"] < 1
    assert outcome.scores["n_vertices"] == 60
    assert features.shape == (60, 30)
    assert len(outcome.sketches.linked) == min(400, len(split.test))


def test_the_split_of_a_seed_is_always_the_same():
    (_, X, one), (_, Y, two), (_, _, other) = load(WORLD, 3), load(WORLD, 3), load(WORLD, 4)
    assert (X != Y).nnz == 0
    assert np.array_equal(one.test, two.test)
    assert one.train == two.train
    assert not np.array_equal(one.test, other.test)


def test_degree_on_the_published_epinions():
    try:
        locate("epinions")
    except DataFileError:
        pytest.skip("epinions is not in the data folder")
    graph = epinions().graph
    split = split_edges(CorrelationGraph(graph.edges, graph.n_vertices), random_state=0)
    posterior, metric = GRAPH_METRICS["degree"](split.train)
    found = score_links(posterior, metric, split)
    assert found["n_vertices"] == 16_101
    assert found["ncrr"] == pytest.approx(0.012929992511610174, abs=1e-6)  # as recorded by the first edition
