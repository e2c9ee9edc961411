"""Correlations that are read from the graph."""

import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise, load
from corrvae.experiments.links import row_scores, score_links, score_rows
from corrvae.graphs import split_edges
from corrvae.graphs.pair_features import PairFeatures
from corrvae.model import TrainingData
from corrvae.model.families.evidence import pool_of
from corrvae.nn import FeatureTable
from corrvae.scoring import make_metric
from corrvae.scoring.links import candidate_recall

RNG = np.random.default_rng(0)
PLACES = RNG.standard_normal((120, 2))
NEAR = np.square(PLACES[:, None] - PLACES).sum(2) < 0.2
GRAPH = CorrelationGraph(np.argwhere(np.triu(NEAR, 1)), 120)
X = RNG.poisson(np.exp(0.5 * PLACES @ RNG.standard_normal((2, 20))))
SPLIT = split_edges(GRAPH, random_state=0)


@pytest.fixture(scope="module")
def model():
    family = Pairwise(inputs="graph", gamma_kl=0.0)
    return CorrelatedVAE(3, family=family, hidden=(8,), max_steps=20, random_state=0).fit(X, graph=SPLIT.known)


def test_hidden_links_are_hidden_from_their_features():
    data = TrainingData(FeatureTable(X.astype(np.float32)), GRAPH.edges, seed=3)
    pool = pool_of(data)
    linked = GRAPH.to_scipy().toarray() > 0
    assert linked[pool.vertices, pool.links].all()
    # their features are those of graphs that lack the link: the degree in them is below that in the whole graph
    assert (np.expm1(pool.phi[:, 0, 8]) < GRAPH.degrees[pool.vertices] - 0.5).all()
    # rows drawn uniformly and weighted by their factors are edges drawn uniformly, on average over splits
    assert pool.factors.mean() == pytest.approx(1.0)
    assert pool_of(data) is pool


def test_hidden_links_are_found(model):
    found = score_links(model.posterior(), make_metric("log_odds"), SPLIT.test, SPLIT.known)
    assert found["ncrr"] > 3 * score_rows(row_scores("degree", SPLIT.known), SPLIT.test, SPLIT.known)["ncrr"]


def test_ranks_and_neighbours_are_those_of_all_scores_in_a_small_graph(model):
    every = model.posterior()
    n_rows = len(X)
    pairs = np.argwhere(~np.eye(n_rows, dtype=bool))
    scores = np.full((n_rows, n_rows), -np.inf)
    scores[tuple(pairs.T)] = every.link_scores(pairs)
    assert scores == pytest.approx(scores.T, rel=1e-3, abs=1e-3)
    known = SPLIT.known.to_scipy().toarray() > 0
    scores[known] = -np.inf
    # all vertices are candidates here: 120 are fewer than are taken
    ranks = model.rank_pairs(SPLIT.test, metric="log_odds", exclude=SPLIT.known).ranks
    for (i, j), rank in zip(SPLIT.test.tolist(), ranks.tolist(), strict=True):
        assert abs(rank - (scores[i] >= scores[i, j]).sum()) <= 1  # nearly equal scores may change places
    near = model.kneighbors(ids=[0, 7], n_neighbors=5, metric="log_odds")
    for row, i in enumerate((0, 7)):
        assert near.scores[row] == pytest.approx(np.sort(scores[i])[::-1][:5], rel=1e-3, abs=1e-3)
    assert candidate_recall(every, SPLIT.test) == 1.0


def test_correlations_rise_with_the_log_odds(model):
    every, pairs = model.posterior(), np.array([[0, 1], [2, 3], [4, 50], [7, 90]])
    order = np.argsort(every.link_scores(pairs))
    assert (np.diff(every.correlation(pairs)[order], axis=0) >= 0).all()
    assert every.correlation(pairs) == pytest.approx(every.correlation(pairs[:, ::-1]), abs=1e-4)
    positions = np.arange(6)
    blocked = every.block(every.vectors(positions), every.vectors(positions + 6)).numpy()
    both = np.stack([np.repeat(positions, 6), np.tile(positions + 6, 6)], axis=1)
    assert np.tanh(blocked.reshape(36, -1)) == pytest.approx(every.correlation(both), abs=1e-4)


def test_a_saved_model_scores_the_same(model, tmp_path):
    model.save(tmp_path / "run")
    pairs = SPLIT.test[:9]
    again = load(tmp_path / "run").score_pairs(pairs, metric="log_odds").scores
    assert np.array_equal(again, model.score_pairs(pairs, metric="log_odds").scores)


def test_the_log_odds_are_fitted_first_and_then_kept(model):
    frozen = {name for name, part in model.model_.family.evidence.named_parameters() if not part.requires_grad}
    assert frozen == {"linear.weight", *(f"layers.{k}.{part}" for k in (0, 2, 4) for part in ("weight", "bias"))}
    assert (model.model_.family.evidence.slope != torch.full((3,), 0.1).log()).any()


def test_non_edges_of_the_paper_train_the_log_odds_with_the_encoder(model):
    family = Pairwise(inputs="graph", gamma_kl=0.0, non_edges="information")
    by_terms = CorrelatedVAE(3, family=family, hidden=(8,), max_steps=300, random_state=0).fit(X, graph=SPLIT.known)
    assert all(part.requires_grad for part in by_terms.model_.family.evidence.parameters())
    found = {
        name: score_links(one.posterior(), make_metric("log_odds"), SPLIT.test, SPLIT.known)["ncrr"]
        for name, one in (("competing", model), ("information", by_terms))
    }
    chance = score_rows(row_scores("degree", SPLIT.known), SPLIT.test, SPLIT.known)["ncrr"]
    assert min(found.values()) > 2 * chance
    assert found["competing"] != found["information"]


def test_vertices_without_an_edge_are_found_among_those_where_leaves_are_linked():
    # everybody is linked to three of eight hubs: who has no link yet is likelier linked to a hub than to anybody else
    generator = np.random.default_rng(0)
    pairs = [(i, hub) for i in range(10, 150) for hub in generator.choice(8, 3, replace=False)]
    family = Pairwise(inputs="graph", gamma_kl=0.0)
    graph = CorrelationGraph.from_edges(pairs, n_vertices=150)
    model = CorrelatedVAE(2, family=family, hidden=(4,), max_steps=5, random_state=0)
    near = model.fit(generator.random((150, 3)), graph=graph).kneighbors(ids=[8, 9], n_neighbors=8, metric="log_odds")
    assert (np.sort(near.ids, axis=1) == np.arange(8)).all()


def test_rows_that_are_not_in_the_graph_are_scored_by_their_features(model):
    points = model.posterior(sparse.csr_array(X[:5]))
    assert isinstance(points.features, PairFeatures)
    assert np.isfinite(points.link_scores(np.array([[0, 1], [2, 3]]))).all()


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="non_edges must be one of"):
        CorrelatedVAE(2, family=Pairwise(non_edges="competing"), max_steps=1).fit(
            np.eye(5), graph=CorrelationGraph([[0, 1]], 5)
        )
    with pytest.raises(ValueError, match='inputs must be "features" or "graph", got \'links\''):
        CorrelatedVAE(2, family=Pairwise(inputs="links"), max_steps=1).fit(
            np.eye(5), graph=CorrelationGraph([[0, 1]], 5)
        )
