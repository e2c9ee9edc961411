import pytest
import torch

from corrvae.training import TrainingSettings, steps_for_epochs
from corrvae.training.settings import choose_device
from support.unchecked import unchecked


@pytest.mark.parametrize(
    "changes",
    [
        {"max_steps": 0},
        {"vertex_batch": 0},
        {"edge_batch": -1},
        {"pair_batch": 0},
        {"evaluate_every": 0},
        {"patience": 0},
        {"seed": -1},
        {"warmup_steps": -1},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"checkpoint_minutes": float("inf")},
        {"checkpoint_steps": 0},
        {"edge_sampling": "some"},
        {"gamma": -1.0},
    ],
)
def test_settings_that_make_no_sense_are_named(changes):
    with unchecked(), pytest.raises(ValueError, match=next(iter(changes))):
        TrainingSettings(**{"max_steps": 1, **changes})


def test_epochs_as_steps():
    assert steps_for_epochs(1, 64, 64) == 1
    assert steps_for_epochs(1, 65, 64) == 2
    assert steps_for_epochs(10, 100, 64) == 16  # not 20: an epoch may end within a step
    assert steps_for_epochs(3, 10, 64) == 3
    assert steps_for_epochs(0.5, 1000, 10) == 50


def test_devices(monkeypatch):
    assert choose_device("cpu") == torch.device("cpu")
    for cuda, mps, expected in [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda mps=mps: mps)
        assert choose_device("auto").type == expected


@pytest.mark.parametrize("name", ["foo", "meta", "cuda:123", "hpu"])
def test_a_device_that_cannot_be_used_is_named(name):
    with pytest.raises(ValueError, match=rf"device='{name}' cannot be used on this machine .* \"cpu\""):
        choose_device(name)
