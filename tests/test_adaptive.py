"""Adaptive forests through the estimator: wrong edges lose weight, and the run behaves as any other."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from corrvae import AdaptiveForests, CorrelatedVAE, CorrelationGraph, Joint, load, spanning_weights
from corrvae.model.adaptive import ForestAdapter
from corrvae.training import Checkpoint

CLUSTERS, SIZE = 6, 20


@pytest.fixture(scope="module")
def noisy():
    """Points in clusters, a graph mostly within them, and which of its edges are not."""
    generator = np.random.default_rng(0)
    of = np.repeat(np.arange(CLUSTERS), SIZE)
    centers = 3.0 * generator.normal(size=(CLUSTERS, 12))
    X = (centers[of] + generator.normal(size=(len(of), 12))).astype(np.float32)
    every = np.stack(np.triu_indices(len(of), 1), axis=1)
    same = of[every[:, 0]] == of[every[:, 1]]
    chosen = generator.random(len(every)) < np.where(same, 0.3, 0.02)
    edges = every[chosen]
    return X, CorrelationGraph(edges, len(of)), ~same[chosen]


def fit(noisy, **options):
    X, graph, _ = noisy
    settings = {
        "n_components": 4,
        "hidden": (16,),
        "max_steps": 120,
        "batch_size": 40,
        "learning_rate": 0.01,
        "forests": AdaptiveForests(first=5),
    }
    return CorrelatedVAE(random_state=0, **(settings | options)).fit(X, graph=graph)


@pytest.fixture(scope="module")
def model(noisy):
    return fit(noisy)


def test_wrong_edges_end_with_small_conductances_and_weights(noisy, model):
    _, graph, wrong = noisy
    assert roc_auc_score(wrong, -model.conductances_) > 0.9
    uniform = fit(noisy, forests="uniform")
    assert model.weights_[wrong].mean() < 0.7 * uniform.weights_[wrong].mean()
    maximal = fit(noisy, forests=AdaptiveForests(ground=0.0, first=5))
    assert maximal.weights_.sum() == pytest.approx(graph.n_vertices - graph.n_connected)


def test_the_support_of_edges_is_a_table_with_the_least_supported_first(noisy, model):
    table = model.edge_support_.to_table()
    assert table.column_names == ["source", "target", "weight", "conductance", "edge_term"]
    assert np.all(np.diff(table["edge_term"].to_numpy()) <= 0)
    assert np.all(np.diff(table["conductance"].to_numpy()) >= -1e-12)
    wrong = {tuple(edge) for edge in noisy[1].edges[noisy[2]].tolist()}
    first = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))[: len(wrong) // 2]
    assert np.mean([edge in wrong for edge in first]) > 0.8


def test_edge_terms_are_those_of_torch_distributions(model, noisy):
    import torch
    from torch.distributions import MultivariateNormal, Normal, kl_divergence

    support, mean, stddev = model.edge_support_, torch.tensor(model.embedding_), torch.tensor(model.stddev_)
    for number in (0, 40, -1):
        i, j = support.id_pairs[number]
        total = 0.0
        for k, tau in enumerate(model.tau_):
            prior = MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, tau], [tau, 1.0]], dtype=torch.float32))
            joint = MultivariateNormal(mean[[i, j], k], torch.diag(stddev[[i, j], k] ** 2))
            singles = kl_divergence(Normal(mean[[i, j], k], stddev[[i, j], k]), Normal(0.0, 1.0)).sum()
            total += float(kl_divergence(joint, prior) - singles)
        assert support.edge_terms[number] == pytest.approx(total, rel=1e-3, abs=1e-3)


def test_the_divergence_is_part_of_the_objective(model):
    history = model.history_.columns
    assert history["forests"][0] == 0.0  # before the first update
    assert history["forests"][-1] > 0.0
    assert len(history["forests"]) == len(history["step"])


def test_the_adapted_objective_is_above_the_uniform_one(noisy, model):
    _, graph, _ = noisy
    terms = model._edge_terms(graph)
    found = ForestAdapter(graph, AdaptiveForests()).adapt(terms)
    uniform = spanning_weights(graph).weights
    assert found.weights @ terms + found.divergence / found.eta < uniform @ terms


def test_saving_loading_and_scoring_keep_the_conductances(noisy, model, tmp_path):
    X, graph, _ = noisy
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    np.testing.assert_array_equal(again.conductances_, model.conductances_)
    assert again.forests.get_params() == model.forests.get_params()
    np.testing.assert_array_equal(again.edge_support_.edge_terms, model.edge_support_.edge_terms)
    assert again.score(X, graph=graph) == model.score(X, graph=graph)


def test_a_resumed_run_ends_in_the_same_bits(noisy, tmp_path):
    X, graph, _ = noisy
    options = {"forests": AdaptiveForests(first=2), "n_components": 2, "hidden": (8,), "batch_size": 40}
    whole = CorrelatedVAE(max_steps=30, random_state=0, **options).fit(X, graph=graph)
    part = CorrelatedVAE(max_steps=17, random_state=0, **options)
    part.fit(X, graph=graph, callbacks=[Checkpoint(tmp_path / "c", steps=17)])
    rest = CorrelatedVAE(max_steps=30, random_state=0, **options)
    rest.fit(X, graph=graph, callbacks=[Checkpoint(tmp_path / "c", steps=100)])
    np.testing.assert_array_equal(rest.embedding_, whole.embedding_)
    np.testing.assert_array_equal(rest.conductances_, whole.conductances_)


def test_weights_are_zero_at_rows_held_out(noisy):
    model = fit(noisy, validation_fraction=0.1)
    uniform = fit(noisy, validation_fraction=0.1, forests="uniform")
    np.testing.assert_array_equal(model.weights_ == 0, uniform.weights_ == 0)
    assert (model.weights_ == 0).any()


@pytest.mark.parametrize("family", ["pairwise", "joint"])
def test_every_family_adapts(noisy, family):
    _, _, wrong = noisy
    model = fit(noisy, family=family)
    assert roc_auc_score(wrong, -model.conductances_) > 0.85


def test_forests_that_are_drawn_in_training_stay_maximal(noisy):
    graph = noisy[1]
    weights = fit(noisy, family=Joint(block_size=None)).weights_
    assert weights.sum() == pytest.approx(graph.n_vertices - graph.n_connected)


def test_a_given_conductance_is_the_starting_point(noisy):
    X, graph, _ = noisy
    given = np.random.default_rng(0).uniform(0.5, 2.0, graph.n_edges)
    graph = CorrelationGraph(graph.edges, graph.n_vertices, conductances=given)
    model = CorrelatedVAE(2, hidden=(8,), max_steps=3, forests=AdaptiveForests(eta=0.0), random_state=0).fit(
        X, graph=graph
    )
    np.testing.assert_allclose(model.conductances_, given)


def test_a_wrong_choice_gets_a_sentence(noisy):
    with pytest.raises(ValueError, match="forests must be"):
        fit(noisy, forests="adapting")
