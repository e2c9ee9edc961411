import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from corrvae import persistence
from corrvae.errors import DamagedFolderError, FolderError
from corrvae.nn import FeatureTable, InputTransform, make_likelihood
from corrvae.regular import open_inside
from corrvae.training import checkpoints
from corrvae.training.checkpoints import CheckpointFolder, Timetable, describe_run
from support.training import N, small_data, small_matrix, small_model, small_settings

CPU = torch.device("cpu")


def test_the_newest_two_are_kept_and_the_newest_is_read(tmp_path):
    folder = CheckpointFolder(tmp_path / "a" / "b", {"seed": 1})
    assert folder.latest() is None
    assert folder.read() is None
    made = (5, 1000, 10**9)
    for count, step in enumerate(made, 1):
        place = folder.write(step, {"x": step}, {"w": torch.full((2,), float(step))})
        assert folder.latest() == place
        kept = [f"step-{step:09d}" for step in made[max(0, count - 2) : count]]
        assert sorted(found.name for found in folder.path.iterdir()) == kept
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
    os.mkfifo(pipe := tmp_path / ".step-000000002.deadbeef.writing")
    (tmp_path / "step-of-mine").mkdir()
    (tmp_path / "step-000000009").mkdir()  # not a checkpoint, only named like one
    assert folder.read().document["step"] == 5
    pipe.unlink()  # nobody waited for it
    keep(folder.write(7, {}, {}))
    later = ["step-000000007", "step-000000009", "step-of-mine"]
    assert sorted(place.name for place in tmp_path.iterdir()) == ["kept", "step-000000005", *later]
    (tmp_path / "kept").rename(tmp_path / "step-000000003")  # as if it had been killed before it removed this one
    assert folder.read().document["step"] == 7
    assert sorted(place.name for place in tmp_path.iterdir()) == ["step-000000005", *later]
    folder.clear()
    assert sorted(place.name for place in tmp_path.iterdir()) == ["step-000000009", "step-of-mine"]


def keep(place):
    """Copy a checkpoint, and give what puts it back beside a later one."""
    copy = place.with_name("kept")
    shutil.copytree(place, copy)
    return lambda: copy.rename(place)


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def seal(place, **changes):
    document = json.loads((place / "config.json").read_text())
    document.pop("checksum")
    document |= changes
    document["checksum"] = persistence._document_checksum(document)
    (place / "config.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda place: (place / "model.safetensors").write_bytes(b""), "truncated"),
        (lambda place: flip(place / "model.safetensors"), "do not match its checksum"),
        (lambda place: flip(place / "config.json"), "damaged"),
        (lambda place: (place / "config.json").write_bytes(b""), "not JSON"),
        (lambda place: (place / "config.json").write_text("{}"), "names no format"),
        (lambda place: (place / "config.json").unlink(), r"config\.json is missing"),
        (lambda place: (place / "model.safetensors").unlink(), "missing"),
        (lambda place: seal(place, files={"x": {"bytes": 1, "sha256": ""}}), "which no folder of ours has"),
    ],
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(tmp_path, damage, problem):
    folder = CheckpointFolder(tmp_path, {})
    earlier = folder.write(5, {"x": 1}, {})
    later = folder.write(10, {"x": 2}, {"w": torch.ones(3)})
    damage(later)
    with pytest.warns(UserWarning, match=rf"step-000000010.*{problem}.*goes on from step-000000005"):
        assert folder.read().document["x"] == 1
    assert folder.latest() == earlier
    assert any(place.name.startswith("damaged-step-000000010-") for place in tmp_path.iterdir())
    assert folder.write(10, {}, {}) == folder.latest()


def test_damage_without_a_whole_checkpoint_before_it_is_told(tmp_path):
    folder = CheckpointFolder(tmp_path, {})
    later = folder.write(10, {"x": 2}, {"w": torch.ones(3)})
    (later / "model.safetensors").write_bytes(b"")
    with pytest.raises(DamagedFolderError, match=r"step-000000010/model\.safetensors: truncated"):
        folder.read()
    assert [place.name for place in tmp_path.iterdir()] == ["step-000000010"]


def test_what_lost_its_document_is_told_and_gives_way(tmp_path):
    folder = CheckpointFolder(tmp_path, {})
    (folder.write(10, {"x": 2}, {"w": torch.ones(3)}) / "config.json").unlink()
    with pytest.raises(DamagedFolderError, match=r"step-000000010: damaged: its config\.json is missing"):
        folder.read()
    folder.clear()
    (aside,) = tmp_path.glob("damaged-step-000000010-*")
    assert (aside / "model.safetensors").is_file()
    assert folder.read() is None
    folder.write(10, {"x": 3}, {})
    assert folder.read().document["x"] == 3


def not_permitted(place, monkeypatch):
    def refuse(asked):
        if asked.parent == place:
            raise PermissionError(13, "Permission denied")
        return open_inside(asked)

    monkeypatch.setattr(persistence, "open_inside", refuse)


def of_a_disk_that_fails(place, monkeypatch):
    lstat = Path.lstat

    def fail(asked):
        if asked.parent == place:
            raise OSError(5, "Input/output error")
        return lstat(asked)

    monkeypatch.setattr(Path, "lstat", fail)


def from_the_future(place, _):
    seal(place, format={"kind": "corrvae checkpoint", "version": 2})


def a_link(place, _):
    place.rename(place.parents[1] / "elsewhere")
    place.symlink_to(place.parents[1] / "elsewhere")


def with_a_pipe(place, _):
    (place / "config.json").unlink()
    os.mkfifo(place / "config.json")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (not_permitted, r"step-000000010/config\.json: cannot be read \(Permission denied\)"),
        (of_a_disk_that_fails, r"step-000000010: cannot be read \(Input/output error\)"),
        (from_the_future, "step-000000010: it was written by a newer corrvae"),
        (a_link, "step-000000010: not a folder; links are not followed"),
        (with_a_pipe, r"step-000000010/config\.json: not a regular file"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_not_taken_for_damaged(tmp_path, monkeypatch, make, problem):
    folder = CheckpointFolder(tmp_path / "run", {})
    folder.write(5, {}, {})
    make(folder.write(10, {}, {}), monkeypatch)
    with pytest.raises(FolderError, match=problem) as refusal:
        folder.read()
    assert not isinstance(refusal.value, DamagedFolderError)
    assert sorted(place.name for place in folder.path.iterdir()) == ["step-000000005", "step-000000010"]


def test_nothing_is_written_through_a_link(tmp_path):
    folder = CheckpointFolder(tmp_path / "run", {})
    (tmp_path / "elsewhere").mkdir()
    folder.path.mkdir()
    (folder.path / "step-000000005").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match="step-000000005: not a folder; links are not followed"):
        folder.write(5, {}, {})
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_checkpoint_that_goes_while_it_is_read_makes_way_for_a_later_one(tmp_path, monkeypatch):
    folder, other = CheckpointFolder(tmp_path, {}), CheckpointFolder(tmp_path, {})
    folder.write(5, {}, {})
    read, busy = checkpoints.read_folder, iter([True])

    def meanwhile(place, **how):
        if next(busy, False):
            other.write(6, {}, {})
            other.write(7, {}, {})
        return read(place, **how)

    monkeypatch.setattr(checkpoints, "read_folder", meanwhile)
    assert folder.read().document["step"] == 7


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
