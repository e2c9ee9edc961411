import math

import numpy as np
import pytest
import torch

from corrvae.errors import TrainingError
from corrvae.model import Terms
from corrvae.nn import FeatureTable
from corrvae.training import data as training_data
from corrvae.training.data import exhaustive
from corrvae.training.validation import broken_term, evaluate
from support.training import NETWORKS, D, N, everything, small_data, small_matrix, small_model


def whole(model, data):
    """The terms over everything at once, at the means."""
    batch = model.family.draw(everything(data), 0)
    with torch.no_grad():
        return model(batch).numbers()


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(torch, "randn", lambda shape, **_: torch.zeros(shape))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("vertices", "edges"), [(2048, 4096), (13, 1000), (1000, 7)])
def test_all_vertices_and_edges_are_evaluated_once(no_noise, monkeypatch, network, vertices, edges):
    monkeypatch.setattr(training_data, "_VERTICES", vertices)
    monkeypatch.setattr(training_data, "_EDGES", edges)
    model, options = small_model(network), {"sample_weights": np.linspace(0, 2, N)}
    found, expected = evaluate(model, exhaustive(small_data(**options))), whole(model, small_data(**options))
    assert found.keys() == expected.keys()
    for name in ("reconstruction", "singleton", "edge"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)
    if network is not None and vertices == 2048:  # all pairs fit into one piece
        assert found == pytest.approx(expected, rel=1e-5)


def test_pairs_of_pieces_estimate_those_of_the_whole(no_noise, monkeypatch):
    monkeypatch.setattr(training_data, "_VERTICES", 10)
    monkeypatch.setattr(training_data, "_PAIRS", 60)
    model = small_model("perceptron")
    found = [evaluate(model, exhaustive(small_data(seed=seed)))["non_edge"] for seed in range(60)]
    error = np.std(found) / np.sqrt(len(found))
    assert error > 0
    assert np.mean(found) == pytest.approx(whole(model, small_data())["non_edge"], abs=4 * error)


def test_a_single_row_has_no_pair():
    model = small_model("perceptron", gamma_kl=0.5)
    alone = evaluate(model, exhaustive(small_data(1, edges=np.empty((0, 2), dtype=np.int64), weights=None)))
    assert alone["edge"] == alone["non_edge"] == 0.0
    assert alone["total"] == pytest.approx(alone["reconstruction"] - 1.5 * alone["singleton"])


def test_without_an_edge_held_out_the_terms_of_pairs_count():
    model = small_model("perceptron", gamma_kl=0.5, gamma_mi=2.0)
    found = evaluate(model, exhaustive(small_data(edges=np.empty((0, 2), dtype=np.int64), weights=None)))
    assert found["edge"] == 0.0
    assert found["non_edge"] > 0
    expected = found["reconstruction"] - 1.5 * found["singleton"] - 2.0 * found["non_edge"]
    assert found["total"] == pytest.approx(expected)


def test_it_is_the_same_every_time_and_leaves_the_model_as_it_was():
    augment = lambda rows, generator: generator.poisson(1.0, (len(rows), D)).astype(np.float32)  # noqa: E731
    data, model = exhaustive(small_data(augment=augment)), small_model("bilinear", dropout=0.5).train()
    before = torch.get_rng_state()
    assert evaluate(model, data, seed=3) == evaluate(model, data, seed=3) != evaluate(model, data, seed=4)
    assert torch.get_rng_state().equal(before)
    assert model.training
    assert model.inputs.training


def test_a_term_that_is_not_finite_names_its_rows():
    X = small_matrix()
    X[17, 2] = np.inf
    with pytest.raises(TrainingError, match="after 12 steps") as caught:
        evaluate(small_model(), exhaustive(small_data(table=FeatureTable(X))), step=12)
    assert (caught.value.step, caught.value.rows) == (12, (17,))
    assert caught.value.term == "the reconstruction term"
    part = exhaustive(small_data(2, table=FeatureTable(X, rows=np.array([4, 17]))))
    with pytest.raises(TrainingError) as caught:
        evaluate(small_model(), part)
    assert caught.value.rows == (17,)  # the row of the matrix, not of the part


def test_the_rows_of_each_term_are_found():
    model, data = small_model("perceptron"), small_data()
    batch = model.family.draw(data, 0)
    with torch.no_grad():
        terms = model(batch)

    def broken(name: str, place: int, value: float) -> tuple[str, list[int]]:
        values = {key: of_term.clone() for key, of_term in terms.values.items()}
        values[name][place] = value
        error = broken_term(Terms(values, terms.weights, terms.coefficients), batch, 3, data.table)
        return error.term, sorted(error.rows)

    vertices, edges, pairs = batch.vertices, batch.edges.numpy(), batch.pairs.numpy()
    assert broken("reconstruction", 3, math.nan) == ("the reconstruction term", [vertices[3]])
    assert broken("singleton", 2, math.inf) == ("the singleton term", [vertices[2]])
    assert broken("edge", 4, -math.inf) == ("the edge term", sorted(vertices[edges[4]].tolist()))
    assert broken("non_edge", 11, math.nan) == ("the non_edge term", sorted(vertices[pairs[11]].tolist()))
    assert broken("edge", 0, 0.0) == ("the objective", sorted(vertices.tolist()))
