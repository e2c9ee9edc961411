import json
import shutil
import time

import numpy as np
import pytest
import torch

from corrvae import persistence
from corrvae.errors import FolderError
from corrvae.nn import FeatureTable, InputTransform, make_likelihood
from corrvae.training.checkpoints import CheckpointFolder, Timetable, describe_run
from support.training import N, small_data, small_matrix, small_model, small_settings

CPU = torch.device("cpu")


def test_the_newest_is_kept_and_read(tmp_path):
    folder = CheckpointFolder(tmp_path / "a" / "b", {"seed": 1})
    assert folder.latest() is None
    assert folder.read() is None
    for step in (5, 1000, 10**9):
        place = folder.write(step, {"x": step}, {"w": torch.full((2,), float(step))})
        assert folder.latest() == place
        assert [found.name for found in folder.path.iterdir()] == [f"step-{step:09d}"]
    found = folder.read()
    assert found.document == {"x": 10**9, "step": 10**9, "run": {"seed": 1}}
    assert found.tensors["w"].tolist() == [1e9, 1e9]


def test_the_one_before_stays_until_the_new_one_is_there(tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path, {})
    folder.write(5, {}, {})

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(persistence, "put_in_place", fail)
    with pytest.raises(FolderError, match="No space"):
        folder.write(6, {}, {})
    assert folder.read().document["step"] == 5


def test_what_a_killed_run_left_is_swept_and_what_others_left_is_not(tmp_path):
    folder = CheckpointFolder(tmp_path, {})
    folder.write(5, {}, {})
    (tmp_path / ".step-000000006.0123abcd.writing").mkdir()
    (tmp_path / "step-of-mine").mkdir()
    (tmp_path / "step-000000009").mkdir()  # not a checkpoint, only named like one
    assert folder.read().document["step"] == 5
    folder.write(7, {}, {})
    assert sorted(place.name for place in tmp_path.iterdir()) == ["step-000000007", "step-000000009", "step-of-mine"]
    folder.clear()
    assert sorted(place.name for place in tmp_path.iterdir()) == ["step-000000009", "step-of-mine"]


def keep(place):
    """Copy a checkpoint, and give what puts it back beside a later one."""
    copy = place.with_name("kept")
    shutil.copytree(place, copy)
    return lambda: copy.rename(place)


def test_a_damaged_checkpoint_gives_way_to_a_whole_one_before_it(tmp_path):
    folder = CheckpointFolder(tmp_path, {})
    put_back = keep(folder.write(5, {"x": 1}, {}))
    later = folder.write(10, {"x": 2}, {"w": torch.ones(3)})
    (later / "model.safetensors").write_bytes(b"")
    with pytest.raises(FolderError, match=r"step-000000010/model\.safetensors: truncated"):
        folder.read()
    put_back()
    with pytest.warns(UserWarning, match=r"model\.safetensors: truncated.*goes on from step-000000005"):
        assert folder.read().document["x"] == 1
    assert folder.latest().name == "step-000000005"
    assert any(place.name.startswith("damaged-step-000000010-") for place in tmp_path.iterdir())
    assert folder.write(10, {}, {}) == folder.latest()


def test_a_later_checkpoint_of_another_process_stays(tmp_path):
    put_back = keep(CheckpointFolder(tmp_path, {}).write(10, {}, {}))
    folder = CheckpointFolder(tmp_path, {})
    folder.clear()
    put_back()
    folder.write(5, {}, {})
    assert sorted(place.name for place in tmp_path.iterdir()) == ["step-000000005", "step-000000010"]


def test_another_runs_checkpoint_is_refused(tmp_path):
    CheckpointFolder(tmp_path, {"seed": 1, "gamma": 1.0}).write(5, {}, {})
    with pytest.raises(FolderError, match=r"its gamma is 1\.0, this run's is 2\.0; give another folder"):
        CheckpointFolder(tmp_path, {"seed": 1, "gamma": 2.0}).read()
    (place,) = tmp_path.iterdir()
    persistence.write_folder(place, kind="corrvae checkpoint", document={"step": 5})
    with pytest.raises(FolderError, match="which run"):
        CheckpointFolder(tmp_path, {}).read()


def with_floor(floor):
    model = small_model()
    model.encoder.floor = floor
    return model


def with_inputs(normalize, reader="inputs"):
    model = small_model()
    setattr(model, reader, InputTransform(normalize))
    return model


def with_likelihood(name):
    model = small_model()
    model.likelihood = make_likelihood(name, 9)
    return model


def test_a_run_is_described_by_all_that_decides_its_course():
    def describe(model=None, data=None, validation=None, **changes):
        described = describe_run(
            model or small_model(), data or small_data(), small_settings(**changes), validation, CPU
        )
        assert json.loads(json.dumps(described)) == described
        return described

    same = describe()
    assert describe(max_steps=99, resume=False, checkpoint_steps=3) == same
    changed = small_matrix()
    changed[N // 2, 3] += 1
    weights = np.linspace(0.5, 1.0, N)
    for other in (
        describe(seed=1),
        describe(gamma=(1.0, 2.0)),
        describe(edge_sampling="weighted"),
        describe(learning_rate=1e-2),
        describe(small_model("bilinear")),
        describe(small_model(tau=0.8)),
        describe(small_model(dropout=0.1)),
        describe(with_floor(0.1)),
        describe(with_inputs("l2")),
        describe(with_inputs("l2", "pair_inputs")),
        describe(with_inputs("raw", "pair_inputs")),
        describe(with_likelihood("poisson")),
        describe(data=small_data(redraw=lambda rows, _: small_matrix()[rows])),
        describe(data=small_data(table=FeatureTable(small_matrix(), missing=True))),
        describe(data=small_data(seed=1)),
        describe(data=small_data(table=FeatureTable(changed))),
        describe(data=small_data(weights=weights**2)),
        describe(data=small_data(weights=None)),
        describe(data=small_data(sample_weights=weights)),
        describe(validation=small_data()),
        describe_run(small_model(), small_data(), small_settings(), None, torch.device("cuda")),
    ):
        assert other != same


def test_the_place_of_a_nonzero_counts():
    counts = np.zeros((N, 9), dtype=np.float32)
    counts[:, 0] = 1
    other = counts[:, ::-1]
    described = [
        describe_run(small_model(), small_data(table=FeatureTable(X)), small_settings(), None, CPU)["data"]
        for X in (counts, np.ascontiguousarray(other))
    ]
    assert described[0] != described[1]


def test_checkpoints_are_due_by_steps_or_minutes(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    by_steps = Timetable(small_settings(checkpoint_steps=10, checkpoint_minutes=None))
    by_minutes = Timetable(small_settings(checkpoint_minutes=2.0))
    neither = Timetable(small_settings(checkpoint_minutes=None))
    assert [step for step in range(1, 31) if by_steps.is_due(step)] == [10, 20, 30]
    assert not by_minutes.is_due(1)
    now += 120.0
    assert by_minutes.is_due(2)
    by_minutes.written()
    assert not by_minutes.is_due(3)
    now += 1e9
    assert not neither.is_due(4)
