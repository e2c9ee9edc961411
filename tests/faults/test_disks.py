"""A disk that is full, read-only or damaged: one sentence, and nothing is lost."""

import errno
import json
import os
import shutil

import pytest

import fragile
from corrvae import load
from corrvae.errors import FolderError
from corrvae.training import Checkpoint

STEPS = 12


@pytest.fixture(scope="module")
def whole():
    return fragile.train(None, STEPS)


def stop_at(step):
    def stop(progress):
        if progress.step == step:
            raise KeyboardInterrupt

    return stop


@pytest.fixture
def stopped(tmp_path):
    """A run that was stopped after six steps, with a checkpoint of five."""
    counts, graph = fragile.data()
    with pytest.raises(KeyboardInterrupt):
        fragile.estimator(STEPS).fit(counts, graph=graph, callbacks=[stop_at(6), Checkpoint(tmp_path / "run", steps=5)])
    return tmp_path / "run"


def is_one_sentence(error):
    return "\n" not in str(error) and len(str(error)) < 400


def fail_at(number, count):
    """Return a replacement of os.fsync that fails at its count-th call as a disk would."""
    calls = 0

    def sync(descriptor):
        nonlocal calls
        calls += 1
        if calls == count:
            raise OSError(number, os.strerror(number))

    return sync


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_disk_that_fails_leaves_the_last_checkpoint(stopped, whole, monkeypatch, number, count):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_at(number, count))
        with pytest.raises(FolderError, match=str(stopped)) as caught:
            fragile.train(str(stopped), STEPS)
    assert is_one_sentence(caught.value)
    assert caught.value.__cause__.errno == number
    assert fragile.train(str(stopped), STEPS) == whole
    assert len(list(stopped.iterdir())) == 3  # config.json, the tensors, the lock


@pytest.mark.parametrize("size", [100, 3000])
def test_files_that_cannot_grow_leave_the_last_checkpoint(helper, stopped, whole, size):
    """A real error of the system, for any user."""
    ending = helper.run(fragile.train, folder=str(stopped), steps=STEPS, largest_file=size)
    assert ending.code == 1
    assert ending.result.startswith(f"FolderError: {stopped}: it cannot be written (")
    assert fragile.train(str(stopped), STEPS) == whole


@pytest.mark.parametrize("call", ["open", "mkdir"])
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_is_reported_before_training(tmp_path, monkeypatch, call, number):
    """As the system would for a user who may not write there; root may everywhere."""
    place = tmp_path / "locked" / "run"
    if call == "open":
        place.mkdir(parents=True)
    real = getattr(os, call)

    def denied(path, *rest, **options):
        if str(path).startswith(str(tmp_path / "locked")):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *rest, **options)

    counts, graph = fragile.data()
    model = fragile.estimator(3).fit(counts, graph=graph)
    monkeypatch.setattr(os, call, denied)
    for work in (lambda: model.save(place), lambda: fragile.train(str(place), 3)):
        with pytest.raises(FolderError, match="no permission, or a read-only disk; choose another place") as caught:
            work()
        assert caught.value.path == place
        assert is_one_sentence(caught.value)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_reported(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    with pytest.raises(FolderError, match="no permission, or a read-only disk; choose another place"):
        fragile.train(str(tmp_path / "locked" / "run"), 3)


def test_damage_to_a_checkpoint_is_reported_and_not_overwritten(stopped):
    (tensors,) = json.loads((stopped / "config.json").read_text())["files"]
    for name in (tensors, "config.json"):
        content = (stopped / name).read_bytes()
        for damaged in (b"", content[: len(content) // 2], b"\0" * len(content)):
            (stopped / name).write_bytes(damaged)
            with pytest.raises(FolderError, match="damaged") as caught:
                fragile.train(str(stopped), STEPS)
            assert caught.value.path == stopped / name
            assert is_one_sentence(caught.value)
            assert (stopped / name).read_bytes() == damaged
        (stopped / name).write_bytes(content)


def test_a_checkpoint_of_something_else_is_reported(stopped, tmp_path):
    config = json.loads((stopped / "config.json").read_text())
    for part, value in (("step", "many"), ("history", 3), ("best", [1.0])):
        changed = {**config, "document": {**config["document"], part: value}}
        (stopped / "config.json").write_text(json.dumps(changed))
        with pytest.raises(FolderError, match="damaged: it is not a whole checkpoint") as caught:
            fragile.train(str(stopped), STEPS)
        assert is_one_sentence(caught.value)
    counts, graph = fragile.data()
    shutil.rmtree(stopped)
    fragile.estimator(3).fit(counts, graph=graph).save(stopped)
    with pytest.raises(FolderError, match="it holds a corrvae model, not a corrvae checkpoint"):
        fragile.train(str(stopped), STEPS)
    assert load(stopped).n_steps_ == 3
