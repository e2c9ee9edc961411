import os
from errno import EACCES, ENOSPC
from pathlib import Path

import pytest

from corrvae import CorrelatedVAE, load
from corrvae.cli.run_folder import RunFolder
from corrvae.cli.settings import resolve
from corrvae.errors import FolderError

SETTINGS = resolve({"features": "/x.csv", "gamma": [0, 30], "steps": 4}, {})


@pytest.fixture(scope="module")
def model():
    return CorrelatedVAE(2, hidden=(4,), max_steps=2, random_state=0).fit([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])


def test_settings_come_back_from_the_folder(tmp_path):
    folder = RunFolder(tmp_path / "deep" / "run")
    folder.refuse_to_begin(overwrite=False)
    folder.begin(SETTINGS, {"rows": 3, "graph_code": None})
    assert folder.settings() == SETTINGS
    assert folder.found() == {"rows": 3}
    assert folder.stopped() is None


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


def test_a_run_is_replaced_only_if_asked_to(tmp_path, model):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    folder.finish(model)
    folder.checkpoint.mkdir()
    (folder.checkpoint / "step").write_text("")
    with pytest.raises(FolderError, match="holds a run already; --resume goes on with it, --overwrite replaces it"):
        folder.refuse_to_begin(overwrite=False)
    folder.refuse_to_begin(overwrite=True)
    folder.begin({**SETTINGS, "seed": 5}, {})
    assert [place.name for place in folder.path.iterdir()] == ["run.toml"]
    assert folder.settings()["seed"] == 5


@pytest.mark.parametrize("name", ["thesis.tex", ".hidden", "run.toml.bak"])
def test_what_is_not_a_run_is_left_alone(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(FolderError, match=rf"is not the folder of a run \(it holds {name}\); nothing was written"):
        RunFolder(tmp_path).refuse_to_begin(overwrite=True)
    RunFolder(tmp_path / "run").begin(SETTINGS, {})
    (tmp_path / "run" / name).write_text("mine")
    with pytest.raises(FolderError, match=rf"is not the folder of a run \(it holds {name}\)"):
        RunFolder(tmp_path / "run").refuse_to_begin(overwrite=True)


def test_a_model_that_was_saved_by_hand_is_no_run(tmp_path, model):
    model.save(tmp_path / "model")
    with pytest.raises(FolderError, match="is not the folder of a run"):
        RunFolder(tmp_path / "model").refuse_to_begin(overwrite=True)
    with pytest.raises(
        FolderError, match=r"there is no run to resume \(no run.toml\); leave --resume out to begin one"
    ):
        RunFolder(tmp_path / "model").settings()


def test_a_run_that_never_began_leaves_nothing(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    folder.abandon()
    assert not folder.path.exists()
    folder.begin(SETTINGS, {})
    folder.history.write_text("step\n")
    folder.abandon()
    assert folder.settings() == SETTINGS


def test_an_empty_folder_will_do_and_a_file_will_not(tmp_path):
    RunFolder(tmp_path).refuse_to_begin(overwrite=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="there is a file of this name"):
        RunFolder(tmp_path / "file").refuse_to_begin(overwrite=True)


@pytest.mark.parametrize("history", [False, True])
def test_a_run_that_left_neither_model_nor_checkpoint_is_not_in_the_way(history, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    if history:
        folder.history.write_text("step\n1\n")
    folder.refuse_to_begin(overwrite=False)
    folder.begin({**SETTINGS, "seed": 5}, {})
    assert [place.name for place in folder.path.iterdir()] == ["run.toml"]
    assert folder.settings()["seed"] == 5


@pytest.mark.parametrize("name", ["checkpoint", "config.json", "model.safetensors", "model.new"])
def test_a_run_that_left_anything_of_use_is_in_the_way(name, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    (folder.path / name).mkdir()
    with pytest.raises(FolderError, match="holds a run already"):
        folder.refuse_to_begin(overwrite=False)


@pytest.mark.skipif(os.name == "nt", reason="there are no locks")
def test_a_run_that_has_just_begun_elsewhere_is_in_the_way(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.begin(SETTINGS, {})
    with folder.held():
        with pytest.raises(FolderError, match="another program is training here"):
            RunFolder(folder.path).refuse_to_begin(overwrite=False)
        with folder.held():  # the lock tells, and stops nobody
            pass
    folder.refuse_to_begin(overwrite=False)


def test_a_folder_that_cannot_be_made_is_told_beforehand(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FolderError, match=r"deep: cannot be written \(Not a directory\)") as raised:
        RunFolder(tmp_path / "file" / "deep").refuse_to_begin(overwrite=False)
    assert raised.value.path == tmp_path / "file" / "deep"
    assert [place.name for place in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_written_is_told_beforehand(tmp_path, monkeypatch):
    def refuse(**where):
        assert where["dir"].is_dir()
        raise PermissionError(EACCES, "Permission denied", str(where["dir"]))

    monkeypatch.setattr("corrvae.cli.run_folder.TemporaryFile", refuse)
    for path in (tmp_path, tmp_path / "new" / "deep"):
        with pytest.raises(FolderError, match=r"cannot be written \(Permission denied\)"):
            RunFolder(path).refuse_to_begin(overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_asking_leaves_no_folder(tmp_path):
    RunFolder(tmp_path / "a" / "b").refuse_to_begin(overwrite=False)
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
    new.refuse_to_begin(overwrite=False)
    new.begin(SETTINGS, {})
    assert [place.name for place in new.path.iterdir()] == ["run.toml"]


def test_what_a_killed_run_left_as_it_began_is_not_in_the_way(tmp_path):
    (tmp_path / ".run.toml.123.part").write_text("half")
    folder = RunFolder(tmp_path)
    folder.refuse_to_begin(overwrite=False)
    folder.begin(SETTINGS, {})
    assert [place.name for place in tmp_path.iterdir()] == ["run.toml"]


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
