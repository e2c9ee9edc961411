"""A run that stops, however it stops, resumes from its checkpoint and ends in the same bits."""

import errno
import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from corrvae.errors import FolderError, TrainingError
from corrvae.io.folder import CONFIG, read_folder, write_folder
from corrvae.nn import FeatureTable
from corrvae.training import Checkpoint, Progress, train
from corrvae.training.data import exhaustive
from support.training import D, N, same_weights, small_data, small_matrix, small_model, sparse_table


def augment(rows, generator):
    counts = generator.poisson(0.5, (len(rows), D)).astype(np.float32)
    counts[:, 0] += 1
    return counts


WEIGHTS = np.linspace(0, 2, N)
# options of the model, of the data and of the training
VARIANTS = {
    "vae": ({"dropout": 0.3}, {"edges": None, "weights": None}, {"average_steps": 5}),
    "independent": ({"dropout": 0.3, "tau": "learned"}, {"augment": augment}, {}),
    "sparse": ({"dropout": 0.3}, {"table": sparse_table(small_matrix())}, {"warmup_steps": 12}),
    "perceptron": ({"network": "perceptron", "tau": "learned_per_dimension"}, {"augment": augment}, {}),
    "bilinear": (
        {"network": "bilinear", "pair_batch": 6, "dropout": 0.3},
        {"sample_weights": np.linspace(0, 2, N)},
        {},
    ),
    "metric": ({"network": "metric", "dropout": 0.2}, {}, {"warmup_steps": 12}),
}


class CrashError(Exception):
    pass


def same_history(a, b) -> bool:
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a if name != "seconds")


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("validated", [False, True])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(tmp_path, name, validated):
    of_model, of_data, options = VARIANTS[name]
    if validated:
        edges = None if name == "vae" else small_data(20).edges
        options = {**options, "validation": exhaustive(small_data(20, features=1, edges=edges, weights=None))}
    options = {**options, "max_steps": 30, "learning_rate": 0.01, "identity": name}
    whole = small_model(**of_model)
    expected = train(whole, small_data(**of_data), **options)

    def disturb(progress):
        if progress.step in (3, 11):  # Ctrl-C between checkpoints, and at a step that is not evaluated
            signal.raise_signal(signal.SIGINT)
        if progress.step == 25 and "crash" not in stops:  # long after the last checkpoint
            stops.append("crash")
            raise CrashError

    stops = []
    while "finished" not in stops:
        model = small_model(**of_model, seed=len(stops))  # where it begins does not matter, once there is a checkpoint
        try:
            callbacks = [Checkpoint(tmp_path, steps=9), disturb]
            result = train(model, small_data(**of_data), **options, callbacks=callbacks)
            stops.append(result.stopped)
        except CrashError:
            pass
    assert stops == ["interrupted", "interrupted", "crash", "finished"]
    assert same_weights(model, whole)
    assert same_history(result.history, expected.history)
    assert (result.step, result.best_step) == (expected.step, expected.best_step)
    assert (result.best_step is not None) == validated


def test_a_checkpoint_is_written_at_its_times(monkeypatch):
    saved, now = [], 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def steps_saved(checkpoint, stopped=None, last=30, seconds_a_step=0.0):
        nonlocal now
        saved.clear()
        monkeypatch.setattr(checkpoint, "save", lambda: saved.append(step) or setattr(checkpoint, "_saved", now))
        for step in range(1, last + 1):
            now += seconds_a_step
            checkpoint(Progress(step, 30, 0.0, 0.0, 0.0, None, stopped if step == last else None))
        return list(saved)

    assert steps_saved(Checkpoint("a", steps=10)) == [10, 20, 30]
    assert steps_saved(Checkpoint("a", steps=10, minutes=1), seconds_a_step=9.0, last=16) == [7, 10]
    assert steps_saved(Checkpoint("a", minutes=2), seconds_a_step=50.0, last=7) == [3, 6]
    assert steps_saved(Checkpoint("a"), seconds_a_step=250.0, last=7) == [3, 6]  # ten minutes
    for stopped in ("finished", "early", "interrupted"):
        assert steps_saved(Checkpoint("a"), stopped) == [30]
    for wrong in ({"steps": 0}, {"minutes": -1.0}, {"minutes": float("nan")}):
        with pytest.raises(ValueError, match=rf"{next(iter(wrong))} must be a positive number"):
            Checkpoint("a", **wrong)


def test_a_finished_run_takes_no_step_but_may_be_lengthened(tmp_path):
    first, second, longer, whole = (small_model(seed=seed) for seed in (0, 1, 2, 0))
    train(first, small_data(), max_steps=14, callbacks=[Checkpoint(tmp_path)])
    fail = [Checkpoint(tmp_path), lambda _: pytest.fail("took a step")]
    again = train(second, small_data(), max_steps=14, callbacks=fail)
    assert (again.stopped, again.step, again.history.n_rows) == ("finished", 14, 2)
    assert same_weights(first, second)
    train(longer, small_data(), max_steps=21, callbacks=[Checkpoint(tmp_path)])
    train(whole, small_data(), max_steps=21)
    assert same_weights(longer, whole)


def test_a_run_that_stopped_early_stays_stopped(tmp_path):
    options = {"max_steps": 400, "learning_rate": 0.3, "patience": 3}
    results, models = [], [small_model(), small_model(seed=1)]
    for model in models:
        validation = exhaustive(small_data(20, features=1))
        data = small_data(batch_size=30)
        results.append(train(model, data, validation=validation, callbacks=[Checkpoint(tmp_path)], **options))
    done, again = results
    assert again.stopped == done.stopped == "early"
    assert (again.step, again.best_step) == (done.step, done.best_step)
    assert same_weights(*models)


def test_the_time_of_a_resumed_run_includes_that_before(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def pass_time(progress):
        nonlocal now
        now += 10.0

    train(small_model(), small_data(), max_steps=7, callbacks=[Checkpoint(tmp_path), pass_time])
    now += 1e6
    history = train(small_model(), small_data(), max_steps=14, callbacks=[Checkpoint(tmp_path), pass_time]).history
    assert history["seconds"].tolist() == [60.0, 120.0]


def test_a_checkpoint_of_another_fit_is_not_resumed(tmp_path):
    train(small_model(), small_data(), max_steps=3, callbacks=[Checkpoint(tmp_path)], identity="one")
    before = {place.name: place.read_bytes() for place in tmp_path.iterdir()}
    with pytest.raises(FolderError, match=r"holds a checkpoint of another fit .* remove it"):
        train(small_model(), small_data(), max_steps=3, callbacks=[Checkpoint(tmp_path)], identity="two")
    assert {place.name: place.read_bytes() for place in tmp_path.iterdir()} == before


def spoil_tensors(folder: Path) -> None:
    (tensors,) = folder.glob("*.safetensors")
    tensors.write_bytes(b"\xff" * tensors.stat().st_size)


def cut_tensors(folder: Path) -> None:
    (tensors,) = folder.glob("*.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-3])


def change(folder: Path, *, tensors=lambda tensors: tensors, **document) -> None:
    found = read_folder(folder, kind="corrvae checkpoint", version=1)
    changed = {**found.document, **document}
    write_folder(folder, kind="corrvae checkpoint", version=1, document=changed, tensors=tensors(dict(found.tensors)))


@pytest.mark.parametrize(
    "damage",
    [
        cut_tensors,
        spoil_tensors,
        lambda folder: next(folder.glob("*.safetensors")).unlink(),
        lambda folder: (folder / CONFIG).write_text("{"),
        lambda folder: (folder / CONFIG).write_text("{}"),
        lambda folder: change(folder, step=None),
        lambda folder: change(folder, history=[]),
        lambda folder: change(folder, tensors=lambda tensors: {"model.x": torch.ones(2)}),
        lambda folder: change(folder, tensors=lambda tensors: {**tensors, "foreign": torch.ones(2)}),
        lambda folder: change(
            folder, tensors=lambda tensors: {k: v for k, v in tensors.items() if k != "optimizer.0.exp_avg"}
        ),
    ],
)
def test_a_damaged_checkpoint_is_one_sentence(tmp_path, damage):
    train(small_model(), small_data(), max_steps=3, callbacks=[Checkpoint(tmp_path)])
    damage(tmp_path)
    with pytest.raises(FolderError, match="damaged") as caught:
        train(small_model(), small_data(), max_steps=6, callbacks=[Checkpoint(tmp_path)])
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_a_newer_version_is_reported(tmp_path):
    train(small_model(), small_data(), max_steps=3, callbacks=[Checkpoint(tmp_path)])
    document = json.loads((tmp_path / CONFIG).read_text())
    (tmp_path / CONFIG).write_text(json.dumps({**document, "version": 99}))
    with pytest.raises(FolderError, match="written by a newer corrvae"):
        train(small_model(), small_data(), max_steps=6, callbacks=[Checkpoint(tmp_path)])


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    """The run ends with a sentence, and resumes from the last checkpoint to the same bits."""
    from corrvae.io import folder

    write = folder._write_file

    def fail(place, content):
        if "-3." in place.name:  # files of the third generation
            place.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(place, content)

    monkeypatch.setattr(folder, "_write_file", fail)
    with pytest.raises(FolderError, match="the disk is full"):
        train(small_model(), small_data(), max_steps=20, callbacks=[Checkpoint(tmp_path, steps=4)])
    monkeypatch.undo()
    assert read_folder(tmp_path, kind="corrvae checkpoint", version=1).document["step"] == 8
    model, whole = small_model(seed=1), small_model()
    train(model, small_data(), max_steps=20, callbacks=[Checkpoint(tmp_path, steps=4)])
    train(whole, small_data(), max_steps=20)
    assert same_weights(model, whole)


def test_a_broken_model_is_never_saved_and_the_error_names_the_last_checkpoint(tmp_path):
    model = small_model()

    def spoil(progress):
        if progress.step == 5:
            with torch.no_grad():
                model.encoder.first.weight[0, 0] = torch.nan

    with pytest.raises(TrainingError, match=r"the weight encoder\.first\.weight.*The last checkpoint is ") as caught:
        train(model, small_data(), max_steps=9, callbacks=[spoil, Checkpoint(tmp_path, steps=2)])
    assert caught.value.checkpoint == tmp_path
    assert read_folder(tmp_path, kind="corrvae checkpoint", version=1).document["step"] == 4
    X = small_matrix()
    X[17, 2] = np.inf
    with pytest.raises(TrainingError) as caught:
        train(small_model(), small_data(table=FeatureTable(X)), max_steps=60)
    assert caught.value.checkpoint is None
