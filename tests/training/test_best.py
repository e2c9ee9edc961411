import json

import pytest
from torch import nn

from corrvae.training.best import BestWeights


def model_at(value: float) -> nn.Module:
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, value)
    return model


def test_the_best_weights_are_copied():
    best, model = BestWeights(), model_at(1.0)
    best.offer(-3.0, 10, model)
    nn.init.constant_(model.weight, 2.0)
    best.offer(-3.0, 20, model)  # as good is not better
    assert (best.step, best.value, best.stale) == (10, -3.0, 1)
    assert best.weights["weight"].item() == 1.0
    best.offer(-2.0, 30, model)
    assert (best.step, best.stale, best.weights["weight"].item()) == (30, 0, 2.0)


def test_it_survives_a_save():
    best = BestWeights()
    empty = BestWeights()
    empty.restore(json.loads(json.dumps(best.state())), {})
    assert (empty.step, empty.weights) == (None, None)
    best.offer(-3.0, 10, model_at(1.0))
    best.offer(-4.0, 20, model_at(2.0))
    again = BestWeights()
    again.restore(json.loads(json.dumps(best.state())), best.weights)
    assert (again.step, again.value, again.stale, again.weights) == (10, -3.0, 1, best.weights)


@pytest.mark.parametrize("change", [{"value": None}, {"value": "x"}, {"step": 1.0}, {"stale": None}])
def test_a_best_evaluation_from_a_file_is_checked(change):
    with pytest.raises(ValueError, match="no best evaluation"):
        BestWeights().restore({"value": 1.0, "step": 1, "stale": 0, **change}, {})
