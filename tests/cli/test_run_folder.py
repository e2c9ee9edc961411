import os
import shutil
from contextlib import contextmanager
from errno import EACCES, ENOSPC
from functools import partial
from pathlib import Path

import pytest

from corrvae import CorrelatedVAE, load
from corrvae.cli.holding import hold
from corrvae.cli.run_folder import RunFolder
from corrvae.cli.running import Request, run_fit
from corrvae.cli.settings import resolve
from corrvae.errors import DamagedFolderError, DataFileError, FolderError
from support.fits import contents

SETTINGS = resolve({"features": "/x.csv", "gamma": [0, 30], "steps": 4}, {})


@pytest.fixture(scope="module")
def model():
    return CorrelatedVAE(2, hidden=(4,), max_steps=2, random_state=0).fit([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])


def test_settings_come_back_from_the_folder(tmp_path):
    folder = RunFolder(tmp_path / "deep" / "run")
    with hold(folder.path):
        folder.refuse_to_begin(overwrite=False)
        folder.begin(SETTINGS, {"rows": 3, "graph_code": None})
    assert folder.settings() == SETTINGS
    assert folder.found() == {"rows": 3}
    assert folder.stopped() is None


def test_settings_that_were_changed_or_cut_off_are_refused_by_their_file(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {"rows": 3, "features_code": "0123"})
    place = folder.path / "run.toml"
    text = place.read_text()
    changed = [("steps = 4", "steps = 5"), ("rows = 3", "rows = 8"), ("seed = 0\n", ""), ('"0123"', '"0122"')]
    others = [text.replace(*change) for change in changed]
    assert text not in others
    cut = [text[:length] for length in range(0, len(text) - 1, 7)]
    for other in (*others, *cut, text.replace("rows = 3", "rows = 1979-05-27")):
        place.write_text(other)
        with pytest.raises((DamagedFolderError, DataFileError)) as raised:
            folder.settings()
        assert raised.value.path == place
    place.write_text("# mine\n" + text.replace("seed = 0", "seed  =  +0"))  # means the same
    assert folder.settings() == SETTINGS


def test_a_model_goes_in_beside_the_rest_and_may_be_replaced(tmp_path, model):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    folder.history.write_text("step\n")
    folder.checkpoint.mkdir()
    model.stopped_ = "interrupted"
    folder.finish(model)
    assert (folder.stopped(), folder.checkpoint.is_dir()) == ("interrupted", True)
    model.stopped_ = "finished"
    folder.finish(model)
    assert (folder.stopped(), folder.checkpoint.is_dir()) == ("finished", False)
    names = {place.name for place in folder.path.iterdir()}
    assert names == {
        "run.toml",
        "history.csv",
        "config.json",
        "model.safetensors",
        "vertices.parquet",
        "history.parquet",
    }
    assert load(folder.path).n_steps_ == 2


def test_a_save_that_breaks_off_leaves_the_model_before(tmp_path, model, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    folder.finish(model)

    def broken(self, path):
        path.mkdir()
        (path / "model.safetensors").write_bytes(b"half")
        raise OSError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(CorrelatedVAE, "save", broken)
        with pytest.raises(OSError, match="no more"):
            folder.finish(model)
    assert load(folder.path).n_steps_ == 2
    folder.finish(model)
    assert load(folder.path).n_steps_ == 2


def finished(path, model, seed=0):
    """Make the folder of a run that was stopped, with a checkpoint and a model."""
    folder = RunFolder(path)
    folder.begin({**SETTINGS, "seed": seed}, {})
    folder.history.write_text(f"step,of\n{seed},7\n")
    (folder.checkpoint / f"step-00000000{seed}").mkdir(parents=True)
    model.stopped_ = "interrupted"
    folder.finish(model)
    return folder


def test_a_run_is_replaced_only_if_asked_to_and_once_there_is_another(tmp_path, model, monkeypatch):
    folder = finished(tmp_path / "run", model)
    before = contents(folder.path)
    with pytest.raises(FolderError, match="holds a run already; --resume goes on with it, --overwrite replaces it"):
        folder.refuse_to_begin(overwrite=False)
    folder.refuse_to_begin(overwrite=True)
    folder.begin({**SETTINGS, "seed": 5}, {})
    assert folder.settings()["seed"] == 5
    assert folder.stopped() is None
    folder.refuse_to_begin(overwrite=True)
    folder.begin({**SETTINGS, "seed": 6}, {})  # again, after a kill
    for name, data in before.items():
        assert (folder.path / name).read_bytes() == data
    monkeypatch.setattr(model, "stopped_", "finished")
    folder.finish(model)
    assert (folder.settings()["seed"], folder.stopped()) == (6, "finished")
    assert set(contents(folder.path)) == {name for name in before if "history.csv" not in name}
    assert not folder.checkpoint.exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vertices.parquet"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_model_is_made_again_from_a_checkpoint_and_told_without_one(name, damage, tmp_path, model):
    folder = finished(tmp_path / "run", model)
    place = folder.path / name
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "gone":
        place.unlink()
    else:
        place.write_bytes(data if damage == "flipped" else data[: len(data) // 2])
    if (name, damage) == ("config.json", "gone"):  # then there is none
        assert folder.stopped() is None
        return
    with pytest.warns(UserWarning, match=rf"{name}.*; the run goes on from its last checkpoint"):
        assert folder.stopped() is None
    folder.finish(model)
    assert folder.stopped() == "interrupted"
    place.write_bytes(data)
    shutil.rmtree(folder.checkpoint)
    with pytest.raises(DamagedFolderError, match=name):
        folder.stopped()


class Killed(BaseException):
    """What ends a program in the middle of things."""


@contextmanager
def killed_at(moment):
    """Let nothing more happen to files from the `moment`-th operation of the system on."""
    seen = 0

    def counted(call, *about, **more):
        nonlocal seen
        seen += 1
        if seen >= moment:
            raise Killed
        return call(*about, **more)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
            patch.setattr(os, name, partial(counted, getattr(os, name)))
        yield


@pytest.mark.parametrize("stopped", ["interrupted", "finished"])
def test_a_program_killed_as_it_replaces_a_run_loses_neither(stopped, tmp_path, model, monkeypatch):
    wanted = contents(finished(tmp_path / "wanted", model, seed=5).path)
    begun = finished(tmp_path / "begun", model)
    begun.begin({**SETTINGS, "seed": 5}, {})
    begun.history.write_text("step,of\n5,7\n")
    (begun.checkpoint / "step-000000005").mkdir(parents=True)
    monkeypatch.setattr(model, "stopped_", stopped)
    model.save(tmp_path / "saved")

    def save(place):  # as the model does, but quickly
        shutil.copytree(tmp_path / "saved", place.with_name(".model.new.01234567.writing")).rename(place)

    monkeypatch.setattr(model, "save", save)
    outcomes = []
    for moment in range(1, 100):
        folder = RunFolder(shutil.copytree(begun.path, tmp_path / f"run-{moment}"))
        try:
            with killed_at(moment):
                folder.finish(model)
            break
        except Killed:
            pass
        with hold(folder.path):
            folder.settle()
            outcomes.append(folder.stopped())
            assert folder.settings()["seed"] == 5
            if outcomes[-1] is None:  # the new one is not whole yet
                assert load(folder.path).stopped_ == "interrupted"
                assert (folder.path / "checkpoint" / "step-000000000").is_dir()
                assert (folder.checkpoint / "step-000000005").is_dir()
                continue
            if outcomes[-1] == "interrupted":
                assert (folder.path / "checkpoint" / "step-000000005").is_dir()
                assert contents(folder.path) == wanted
            folder.tidy()
        assert set(contents(folder.path)) == set(wanted)
        assert not (folder.path / "run.next").exists()
    assert outcomes == sorted(outcomes, key=lambda one: one is not None)
    assert set(outcomes) == {None, stopped}
    assert len(outcomes) > 15


@pytest.mark.parametrize("name", ["thesis.tex", ".hidden", "run.toml.bak"])
def test_what_is_not_a_run_is_left_alone(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(FolderError, match=rf"is not the folder of a run \(it holds {name}\); nothing was written"):
        RunFolder(tmp_path).refuse_to_begin(overwrite=True)
    RunFolder(tmp_path / "run").begin(SETTINGS, {})
    (tmp_path / "run" / name).write_text("mine")
    with pytest.raises(FolderError, match=rf"is not the folder of a run \(it holds {name}\)"):
        RunFolder(tmp_path / "run").refuse_to_begin(overwrite=True)


FOREIGN = (
    "model.new/mine",
    "model.moving/mine",
    "config.json",
    "features/a.csv",
    "checkpoint/b",
    "run.next/history.csv",
)


@pytest.mark.parametrize("how", [{"overwrite": True}, {"resume": True}, {}])
@pytest.mark.parametrize("more", ["thesis.tex", "run.toml", "model.new/config.json"])
def test_a_folder_of_others_that_has_our_names_loses_nothing(how, more, tmp_path, model):
    place = tmp_path / "theirs"
    for name in (*FOREIGN, more):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("mine = 1")
    if more == "model.new/config.json":  # even what is a model is theirs, if there is no run
        shutil.rmtree(place / "model.new")
        model.save(place / "model.new")
    before = contents(place)
    with pytest.raises((FolderError, DataFileError)):
        run_fit(Request(place, {"features": str(tmp_path / "none.csv")}, **how))
    assert contents(place) == before


@pytest.mark.parametrize("change", [("features", "# mine\nfeatures"), ("seed = 0", "seed = 1")])
def test_settings_that_somebody_wrote_are_not_replaced_unasked(change, tmp_path):
    place = tmp_path / "run.toml"
    RunFolder(tmp_path).begin(SETTINGS, {})
    place.write_text(place.read_text().replace(*change).partition("[found]")[0])  # such as --config names
    (tmp_path / "history.csv").write_text("mine")
    with pytest.raises(FolderError, match=r"run.toml is not as a run wrote it; nothing was written: .* --overwrite"):
        RunFolder(tmp_path).refuse_to_begin(overwrite=False)


def test_a_run_beside_the_files_of_others_goes_on_and_is_not_replaced(tmp_path, model):
    folder = finished(tmp_path / "run", model)
    model.save(folder.path / "model.new")
    (folder.path / "notes.txt").write_text("mine")
    before = contents(folder.path)
    with hold(folder.path), pytest.raises(FolderError, match=r"it holds notes.txt"):
        folder.refuse_to_begin(overwrite=True)
    assert contents(folder.path) == before
    with hold(folder.path):
        folder.settle()
    assert not (folder.path / "model.new").exists()
    assert folder.stopped() == "interrupted"


def test_what_only_has_the_name_of_a_model_is_not_put_in_its_place(tmp_path, model):
    folder = finished(tmp_path / "run", model)
    for name in ("model.new", "model.moving"):
        (folder.path / name).mkdir()
        (folder.path / name / "config.json").write_text("{}")
    folder.settle()
    assert folder.stopped() == "interrupted"
    folder.finish(model)  # which has a whole one
    assert folder.stopped() == "interrupted"
    assert not (folder.path / "model.moving").exists()


def test_a_model_that_was_saved_by_hand_is_no_run(tmp_path, model):
    model.save(tmp_path / "model")
    with pytest.raises(FolderError, match="is not the folder of a run"):
        RunFolder(tmp_path / "model").refuse_to_begin(overwrite=True)
    with pytest.raises(
        FolderError, match=r"there is no run to resume \(no run.toml\); leave --resume out to begin one"
    ):
        RunFolder(tmp_path / "model").settings()


def test_a_run_that_never_began_leaves_nothing(tmp_path):
    folder = RunFolder(tmp_path / "deep" / "run")
    with hold(folder.path):
        folder.begin(SETTINGS, {})
        folder.abandon()
    assert list(tmp_path.iterdir()) == []
    folder.begin(SETTINGS, {})
    folder.history.write_text("step\n")
    folder.abandon()
    assert folder.settings() == SETTINGS


def test_a_run_that_never_began_leaves_the_one_that_it_was_to_replace(tmp_path, model):
    folder = finished(tmp_path / "run", model)
    before = contents(folder.path)
    folder.begin({**SETTINGS, "seed": 5}, {})
    folder.abandon()
    assert contents(folder.path) == before
    assert not (folder.path / "run.next").exists()
    assert folder.settings() == {**SETTINGS, "seed": 0}


def test_an_empty_folder_will_do_and_a_file_will_not(tmp_path):
    RunFolder(tmp_path).refuse_to_begin(overwrite=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="there is a file of this name"):
        RunFolder(tmp_path / "file").refuse_to_begin(overwrite=True)


@pytest.mark.parametrize("left", [None, "history.csv", "checkpoint", "checkpoint/.step-000000001.01234567.writing"])
def test_a_run_that_left_neither_model_nor_checkpoint_is_not_in_the_way(left, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    if left == "history.csv":
        folder.history.write_text("step\n1\n")
    elif left:
        (folder.path / left).mkdir(parents=True)
    folder.refuse_to_begin(overwrite=False)
    folder.begin({**SETTINGS, "seed": 5}, {})
    assert [place.name for place in folder.path.iterdir()] == ["run.toml"]
    assert folder.settings()["seed"] == 5


@pytest.mark.parametrize("name", ["checkpoint/step-000000001", "config.json", "model.new", "run.next"])
def test_a_run_that_left_anything_of_use_is_in_the_way(name, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    (folder.path / name).mkdir(parents=True)
    with pytest.raises(FolderError, match="holds a run already"):
        folder.refuse_to_begin(overwrite=False)


def test_a_folder_that_cannot_be_written_is_told_beforehand(tmp_path, monkeypatch):
    def refuse(**where):
        assert where["dir"].is_dir()
        raise PermissionError(EACCES, "Permission denied", str(where["dir"]))

    monkeypatch.setattr("corrvae.cli.run_folder.TemporaryFile", refuse)
    for path in (tmp_path, tmp_path / "new" / "deep"):
        with pytest.raises(FolderError, match=r"cannot be written \(Permission denied\)"), hold(path):
            RunFolder(path).refuse_to_begin(overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_asking_leaves_no_folder(tmp_path):
    folder = RunFolder(tmp_path / "a" / "b")
    with hold(folder.path):
        folder.refuse_to_begin(overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_only_what_cannot_change_the_result_may_change(tmp_path):
    folder = RunFolder(tmp_path)
    folder.check_unchanged(SETTINGS, {"steps": 4, "likelihood": "auto", "threads": 7, "gamma": [0.0, 30.0]})
    with pytest.raises(FolderError, match=r"this run has gamma = \[0.0, 30.0\], not 1.0, and cannot go on otherwise"):
        folder.check_unchanged(SETTINGS, {"gamma": 1.0})
    with pytest.raises(FolderError, match=r'this run has graph = nothing, not "/e\.csv", and'):
        folder.check_unchanged(SETTINGS, {"graph": "/e.csv"})


def test_a_full_disk_as_a_run_begins_leaves_what_was_there(tmp_path, model, monkeypatch):
    def full(self, text, encoding):
        self.write_bytes(b"half")
        raise OSError(ENOSPC, "no space left on device")

    old, new = RunFolder(tmp_path / "old"), RunFolder(tmp_path / "new")
    old.begin(SETTINGS, {})
    old.finish(model)
    before = sorted(place.name for place in old.path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        for folder in (old, new):
            with pytest.raises(OSError, match="no space left"):
                folder.begin({**SETTINGS, "seed": 5}, {})
    assert sorted(place.name for place in old.path.iterdir()) == before
    assert (old.settings(), load(old.path).n_steps_) == (SETTINGS, 2)
    with hold(new.path):
        new.refuse_to_begin(overwrite=False)
        new.begin(SETTINGS, {})
    assert [place.name for place in new.path.iterdir()] == ["run.toml"]


def test_what_a_killed_run_left_as_it_began_is_not_in_the_way(tmp_path):
    (tmp_path / ".run.toml.123.part").write_text("half")
    folder = RunFolder(tmp_path)
    folder.refuse_to_begin(overwrite=False)
    folder.begin(SETTINGS, {})
    assert [place.name for place in tmp_path.iterdir()] == ["run.toml"]


def test_what_a_killed_run_left_as_it_began_to_replace_another_is_not_in_the_way(tmp_path, model):
    folder = finished(tmp_path / "run", model)
    (folder.path / "run.next").mkdir()
    (folder.path / "run.next" / ".run.toml.0123abcd.part").write_text("half")
    folder.refuse_to_begin(overwrite=True)
    folder.begin({**SETTINGS, "seed": 5}, {})
    assert [place.name for place in folder.work.iterdir()] == ["run.toml"]
    assert folder.settings()["seed"] == 5


def test_what_a_run_that_is_over_does_not_need_is_removed(tmp_path):
    folder = RunFolder(tmp_path)
    for name in ("checkpoint/step-000000012", "model.new"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run.toml").write_text("")
    folder.tidy()
    folder.tidy()
    assert [place.name for place in tmp_path.iterdir()] == ["run.toml"]


def test_parts_that_are_left_to_the_run_agree_with_it(tmp_path):
    folder = RunFolder(tmp_path / "run")
    kept = {**SETTINGS, "normalize": ["l2", "raw"]}
    folder.check_unchanged(kept, {"normalize": ["auto", "raw"]})
    folder.check_unchanged(kept, {"normalize": "auto"})
    for other in (["auto", "l2"], ["auto"], "l2"):
        with pytest.raises(FolderError, match="this run has normalize"):
            folder.check_unchanged(kept, {"normalize": other})


def test_a_folder_remembers_the_launch_that_began_it(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert not folder.was_begun_by("job 7")
    folder.begin(SETTINGS, {"launch": "job 7"})
    assert folder.was_begun_by("job 7")
    assert not folder.was_begun_by("job 8")
    assert not folder.was_begun_by(None)
    folder.begin(SETTINGS, {})
    assert not folder.was_begun_by(None)
