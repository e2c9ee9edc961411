"""Candidates that compete: the term, what is excluded from it, and that training on it tells pairs from all others."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph, Independent, Joint, Pairwise
from corrvae.model import Posterior, TrainingData, build_model
from corrvae.model.objectives import beyond_nearest, competition, log_odds_block
from corrvae.nn import FeatureTable, Marginals
from corrvae.scoring import make_metric, score_matrix


@given(st.integers(0, 100), st.integers(1, 6))
def test_the_term_is_the_mean_of_two_softmaxes(seed, n):
    generator = np.random.default_rng(seed)
    scores, excluded = generator.normal(size=(n, n)), generator.random((n, n)) < 0.3
    np.fill_diagonal(excluded, False)
    expected = []
    for i in range(n):
        rows = sum(np.exp(scores[i, j]) for j in range(n) if not excluded[i, j])
        columns = sum(np.exp(scores[j, i]) for j in range(n) if not excluded[j, i])
        expected.append((np.log(np.exp(scores[i, i]) / rows) + np.log(np.exp(scores[i, i]) / columns)) / 2)
    found = competition(torch.from_numpy(scores), torch.from_numpy(excluded))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("tau", [0.9, [0.3, 0.8, 0.95]])
def test_scores_are_log_odds_up_to_a_constant_where_points_are_equally_certain(tau):
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(4, 3)), generator.normal(size=(5, 3))
    stddev = np.array([0.2, 0.6, 0.9])
    tau = np.broadcast_to(tau, 3).copy()
    points = [Posterior(mean.astype(np.float32), np.tile(stddev, (len(mean), 1)), tau=tau) for mean in (left, right)]
    marginals = [Marginals.of(torch.from_numpy(p.mean), torch.from_numpy(p.stddev).float()) for p in points]
    difference = (
        score_matrix(*points, make_metric("log_odds")) - log_odds_block(*marginals, torch.from_numpy(tau)).numpy()
    )
    np.testing.assert_allclose(difference, difference.mean(), atol=1e-4)


@given(st.integers(0, 100), st.integers(1, 6), st.integers(1, 4))
def test_what_is_beyond_the_nearest_is_neither_near_in_its_row_nor_in_its_column(seed, n, k):
    scores = np.random.default_rng(seed).normal(size=(n, n))
    found = beyond_nearest(torch.from_numpy(scores), k)
    for i in range(n):
        for j in range(n):
            row = sum(scores[i, other] > scores[i, j] for other in range(n) if other != i)
            column = sum(scores[other, j] > scores[i, j] for other in range(n) if other != j)
            assert found[i, j] == (i != j and row >= k and column >= k)


def batch_of(edges, features, rivals):
    data = TrainingData(FeatureTable(sparse.csr_array(features)), np.array(edges), batch_size=2, edge_batch_size=9)
    return data, Independent(contrast=1.0, rivals=rivals).draw(data, 0)


@given(st.integers(0, 200), st.sampled_from(["all", "disjoint"]))
def test_points_their_neighbours_and_what_overlaps_do_not_compete(seed, rivals):
    generator = np.random.default_rng(seed)
    features = (generator.random((8, 24)) < 0.15).astype(np.float32)
    edges = np.argwhere(np.triu(generator.random((8, 8)) < 0.3, 1))
    if not len(edges):
        return
    data, batch = batch_of(edges, features, rivals)
    linked = {tuple(edge) for edge in edges.tolist()} | {tuple(edge[::-1]) for edge in edges.tolist()}
    ends = batch.vertices[batch.edges.numpy()].tolist()
    for e, (i, _) in enumerate(ends):
        for f, (_, j) in enumerate(ends):
            shared = rivals == "disjoint" and bool((features[i] * features[j]).any())
            assert batch.excluded[e, f] == (e != f and (i == j or (i, j) in linked or shared))
    half = batch.share(1, 2)
    mine = len(batch.edges) // 2
    assert torch.equal(half.excluded, batch.excluded[mine:, mine:])
    assert data.n_edges == len(edges)


@pytest.mark.parametrize("rivals", ["all", "nearest"])
@pytest.mark.parametrize("family", [Independent, Pairwise, Joint])
def test_the_term_is_added_to_the_objective_and_reaches_encoder_and_temperature(family, rivals):
    data = TrainingData(FeatureTable(np.random.default_rng(0).normal(size=(12, 5))), np.array([[0, 1], [2, 3], [4, 5]]))
    model = build_model(5, 2, family=family(contrast=7.0, rivals=rivals), hidden=(4,))
    terms = model(model.family.draw(data, 0))
    assert terms.coefficients["contrast"] == 7.0
    assert terms.numbers()["contrast"] < 0.0
    terms.estimates[list(terms.values).index("contrast")].backward()
    assert float(model.encoder.first.weight.grad.norm()) > 0.0
    assert model.family.log_temperature.grad is not None
    plain = build_model(5, 2, family=family(), hidden=(4,))
    assert "contrast" not in plain(plain.family.draw(data, 0)).values
    assert plain.family.log_temperature is None


@pytest.mark.parametrize("wrong", [{"contrast": -1.0}, {"contrast": np.inf}, {"rivals": "some"}])
def test_wrong_options_raise(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Independent(**wrong).build(3, 2, normalize="none", dropout=0.0)


def test_joint_posteriors_compare_rows_alone():
    X, edges = np.random.default_rng(0).normal(size=(12, 5)), [(0, 1), (2, 3), (4, 5)]
    model = CorrelatedVAE(2, family=Joint(contrast=7.0), init="linear", max_steps=2, random_state=0)
    assert model.fit(X, graph=edges).history_["contrast"][-1] < 0.0
    model.set_params(family__block_size=4)
    with pytest.raises(ValueError, match="it needs block_size=1"):
        model.fit(X, graph=edges)


def test_training_tells_pairs_from_all_others():
    generator = np.random.default_rng(0)
    shared, own = generator.normal(size=(60, 3)), 3 * generator.normal(size=(120, 5))
    X = np.concatenate([np.repeat(shared, 2, axis=0) + 0.1 * generator.normal(size=(120, 3)), own], axis=1)
    graph = CorrelationGraph(np.arange(120).reshape(60, 2), 120)
    found = {}
    for contrast in (0.0, 100.0):
        model = CorrelatedVAE(3, family=Independent(contrast=contrast), max_steps=60, hidden=(16,), random_state=0)
        model.fit(X, graph=graph)
        found[contrast] = np.mean(1 / model.rank_pairs(graph.edges, metric="log_odds").ranks)
    assert found[100.0] > found[0.0] + 0.2
