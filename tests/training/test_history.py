import json

import numpy as np
import pytest
import torch

from corrvae.model import Batch
from corrvae.training import History
from corrvae.training.history import TERMS, RunningMeans, term_values
from support.training import small_data, small_model


def test_columns_grow_row_by_row():
    history = History()
    assert history.n_rows == 0
    history.append({"step": 5, "total": -2.0})
    history.append({"step": 10, "total": -1.5})
    assert list(history) == ["step", "total"]
    assert history.n_rows == 2
    np.testing.assert_array_equal(history["total"], [-2.0, -1.5])
    np.testing.assert_array_equal(history["step"], [5, 10])
    assert repr(history) == "History(2 evaluations: step, total)"
    assert json.loads(json.dumps(history.columns)) == history.columns


def test_running_means_begin_anew_and_survive_a_save():
    means = RunningMeans()
    means.add({"total": 1.0, "edge": 0.1})
    saved = json.loads(json.dumps(means.state()))
    means = RunningMeans()
    means.restore(saved)
    means.add({"total": 4.0, "edge": 0.2})
    assert means.take() == {**dict.fromkeys(TERMS, 0.0), "total": 2.5, "edge": (0.1 + 0.2) / 2}
    means.add({"total": 7.0})
    assert means.take()["total"] == 7.0


@pytest.mark.parametrize("pair", [None, "perceptron"])
def test_numbers_are_those_of_the_terms(pair):
    data, model = small_data(), small_model(pair)
    edges, weights = torch.tensor([[0, 1], [2, 3]]), torch.tensor([0.5, 2.0])
    batch = Batch(data.table.rows(np.arange(6)), 5, edges, weights, vertex_weights=torch.linspace(0, 2, 5))
    terms = model.terms(batch, data.population, noise=torch.zeros(5, 3))
    values = term_values(terms)
    assert set(values) == {"total", "reconstruction", "singleton", "edge"} | ({"non_edge"} if pair else set())
    for name, value in values.items():
        assert value == pytest.approx(terms.floats()[name], rel=1e-5)
