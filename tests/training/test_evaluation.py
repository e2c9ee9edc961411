import numpy as np
import pytest
import torch

from corrvae.model import Batch, Population
from corrvae.training import evaluation
from corrvae.training.evaluation import Evaluator
from support.training import N, small_data, small_model


def evaluate(model, data, seed: int = 0, gamma=0.7):
    return Evaluator(data, gamma, np.random.SeedSequence(seed))(model)


def whole(model, data, draws: int, gamma=0.7):
    """The terms over everything at once, with the noise averaged out."""
    n = data.n_vertices
    edges = None if data.edges is None else torch.from_numpy(data.edges)
    weights = None if data.weights is None else torch.from_numpy(data.weights).float()
    batch = Batch(data.table.rows(np.arange(n)), n, edges, weights)
    with torch.no_grad():
        found = [model.terms(batch, data.population, gamma=gamma).floats() for _ in range(draws)]
    return {name: np.mean([terms[name] for terms in found]) for name in found[0]}


@pytest.mark.parametrize("pair", [None, "perceptron", "bilinear"])
@pytest.mark.parametrize("pieces", [1, 5])
def test_terms_are_those_of_the_whole(pair, pieces, monkeypatch):
    monkeypatch.setattr(evaluation, "_VERTICES", N // pieces)
    model, data = small_model(pair), small_data()
    found, expected = [evaluate(model, data, seed) for seed in range(12)], whole(model, data, draws=30)
    for name in ("singleton", "edge"):  # these have no draws in them
        assert found[0][name] == pytest.approx(expected[name], rel=1e-4)
    for name in ("reconstruction", "non_edge", "total"):
        assert np.mean([values[name] for values in found]) == pytest.approx(expected[name], rel=0.03)


def test_pieces_do_not_matter_where_nothing_is_drawn(monkeypatch):
    model, data = small_model(), small_data(sample_weights=np.linspace(0, 2, N))
    one = evaluate(model, data)
    for vertices, edges in [(7, 1000), (1000, 3), (2, 2), (1, 1)]:
        monkeypatch.setattr(evaluation, "_VERTICES", vertices)
        monkeypatch.setattr(evaluation, "_EDGES", edges)
        many = evaluate(model, data)
        assert many["singleton"] == pytest.approx(one["singleton"], rel=1e-5)
        assert many["edge"] == pytest.approx(one["edge"], rel=1e-5)


def test_fewer_edges_than_pieces(monkeypatch):
    monkeypatch.setattr(evaluation, "_VERTICES", 4)
    model = small_model("perceptron")
    data = small_data(edges=np.array([[0, 1], [5, 9]]), weights=np.array([1.0, 0.5]))
    found, expected = evaluate(model, data), whole(model, data, draws=1)
    assert found["edge"] == pytest.approx(expected["edge"], rel=1e-4)
    assert found["non_edge"] == pytest.approx(expected["non_edge"], rel=0.05)


def test_data_without_edges():
    model = small_model("perceptron")
    plain = evaluate(model, small_data(edges=None, weights=None))
    assert plain["edge"] == plain["non_edge"] == 0.0
    assert plain["total"] == pytest.approx(plain["reconstruction"] - plain["singleton"])
    none = evaluate(model, small_data(edges=np.empty((0, 2), dtype=np.int64), weights=None), gamma=(0.5, 2.0))
    assert none["edge"] == 0.0
    assert none["non_edge"] > 0
    expected = none["reconstruction"] - 1.5 * none["singleton"] - 2.0 * none["non_edge"]
    assert none["total"] == pytest.approx(expected)
    alone = evaluate(model, small_data(1, edges=None, weights=None))
    assert alone["singleton"] > 0


def trained_on(n_vertices=500, n_edges=800, total_weight=450.0):
    return Population(n_vertices, n_edges, total_weight)


def evaluate_like(model, data, population, gamma=0.7):
    return Evaluator(data, gamma, np.random.SeedSequence(0), trained_on=population)(model)


@pytest.mark.parametrize("pair", [None, "perceptron"])
@pytest.mark.parametrize("pieces", [1, 5])
@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.25, 0.5])])
def test_terms_keep_the_proportions_of_training(pair, pieces, weights, monkeypatch):
    """The edge term is the weighted mean of T, times training's weight per vertex, however few edges are held out."""
    monkeypatch.setattr(evaluation, "_VERTICES", N // pieces)
    model, data = small_model(pair), small_data(edges=np.array([[0, 1], [5, 9], [9, 30]]), weights=weights)
    own, found = evaluate(model, data), evaluate_like(model, data, trained_on())
    total = 3.0 if weights is None else weights.sum()
    assert found["edge"] == pytest.approx(own["edge"] * N / total * 450 / 500, rel=1e-4)
    assert found["non_edge"] == pytest.approx(own["non_edge"] * (499 / 500) / ((N - 1) / N), rel=1e-4)
    for name in ("reconstruction", "singleton"):
        assert found[name] == own[name]
    gamma = 0.0 if pair is None else 0.7
    penalty = (1 + gamma) * found["singleton"] + found["edge"] + gamma * found["non_edge"]
    assert found["total"] == pytest.approx(found["reconstruction"] - penalty, rel=1e-5)


@pytest.mark.parametrize("edges", [None, np.empty((0, 2), dtype=np.int64)])
def test_gamma_counts_without_an_edge_held_out_if_it_does_in_training(edges):
    model, data = small_model("perceptron"), small_data(edges=edges, weights=None)
    found = evaluate_like(model, data, trained_on(), gamma=(0.5, 2.0))
    assert found["edge"] == 0.0
    assert found["non_edge"] > 0
    expected = found["reconstruction"] - 1.5 * found["singleton"] - 2.0 * found["non_edge"]
    assert found["total"] == pytest.approx(expected)
    alone = evaluate_like(model, small_data(1, edges=None, weights=None), trained_on(), gamma=(0.5, 2.0))
    assert alone["total"] == pytest.approx(alone["reconstruction"] - 1.5 * alone["singleton"])


def test_a_model_trained_without_edges_is_evaluated_without():
    found = evaluate_like(small_model("perceptron"), small_data(), trained_on(500, 0, 0.0))
    assert found["edge"] == found["non_edge"] == 0.0
    assert found["total"] == pytest.approx(found["reconstruction"] - found["singleton"])


def test_it_is_the_same_every_time_and_leaves_the_model_as_it_was():
    data = small_data(redraw=lambda rows, generator: generator.poisson(1.0, (len(rows), 9)).astype(np.float32))
    model = small_model("bilinear", dropout=0.5)
    model.train()
    evaluator = Evaluator(data, 1.0, np.random.SeedSequence(3))
    before = torch.get_rng_state()
    assert evaluator(model) == evaluator(model)
    assert evaluator(model) != evaluate(model, data, seed=4, gamma=1.0)
    assert torch.get_rng_state().equal(before)
    assert model.training
    assert model.inputs.training
