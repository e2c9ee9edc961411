import platform
import signal
from dataclasses import replace
from importlib.metadata import version

import pytest

import corrvae
from corrvae.experiments import worker
from corrvae.experiments.outcomes import keep_quiet
from corrvae.experiments.records import read_record
from corrvae.experiments.worker import library_versions, peak_megabytes, perform, serve, throttled
from support.experiments import tiny_job


@pytest.mark.parametrize("task", ["clustering", "links", "matching"])
def test_a_job_leaves_its_record_and_nothing_else(task, tmp_path):
    job = tiny_job(tmp_path, task=task, seed=2)
    record = perform(job, keep_quiet)
    assert read_record(job.path) == read_record(job.path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [job.path]
    assert not (tmp_path / ".partial").exists()
    assert (record.task, record.recipe, record.model, record.label, record.seed) == (
        task,
        "quick",
        "ind",
        "CVAE_ind",
        2,
    )
    assert record.settings["all_parameters"]["random_state"] == 2
    assert record.seconds > 0
    assert record.peak_megabytes > 10
    assert record.command == job.command
    assert job.path.stat().st_size < 100_000


def test_what_is_written_is_what_was_given(tmp_path):
    job = tiny_job(tmp_path)
    record = perform(job, keep_quiet)
    read = read_record(job.path)
    assert (read.scores, read.history, read.sketches) == (record.scores, record.history, record.sketches)


def test_the_same_job_gives_the_same_scores(tmp_path):
    first, second = (perform(tiny_job(tmp_path / name), keep_quiet) for name in "ab")
    assert first.scores == second.scores
    assert first.history == second.history


def test_versions_are_those_installed():
    found = library_versions()
    assert found["python"] == platform.python_version()
    assert found["corrvae"] == corrvae.__version__
    for name in ("torch", "numpy", "scipy", "scikit-learn", "numba"):
        assert found[name] == version(name)


def test_memory_only_grows():
    before = peak_megabytes()
    held = bytearray(64 * 2**20)
    assert peak_megabytes() >= before
    del held


def events_of(job, monkeypatch, during=None):
    told = []
    if during is not None:
        monkeypatch.setattr(worker, "perform", during)
    serve(job.to_json() + "\n", told.append)
    return told


def test_events_tell_how_it_goes(tmp_path, monkeypatch):
    told = events_of(tiny_job(tmp_path, "lsa"), monkeypatch)
    assert told[0] == {"event": "progress", "doing": "reading the data", "done": 0, "total": None}
    assert told[-1] == {"event": "done"}


def test_a_problem_is_told_in_its_words(tmp_path, monkeypatch):
    job = tiny_job(tmp_path, "ind")
    told = events_of(replace(job, entry=replace(job.entry, parameters={"tau": 3.0})), monkeypatch)
    assert told[-1]["event"] == "failed"
    assert "tau" in told[-1]["problem"]


def test_ctrl_c_is_told(tmp_path, monkeypatch):
    told = events_of(tiny_job(tmp_path), monkeypatch, lambda job, report: signal.raise_signal(signal.SIGINT))
    assert told == [{"event": "interrupted"}]


def test_a_fault_shows_its_place(tmp_path, monkeypatch, capsys):
    def faulty(job, report):
        raise KeyError("nothing")

    assert events_of(tiny_job(tmp_path), monkeypatch, faulty) == [{"event": "failed", "problem": "KeyError: 'nothing'"}]
    assert "in faulty" in capsys.readouterr().err


def test_reports_are_passed_on_now_and_then():
    seen = []
    report = throttled(lambda *said: seen.append(said), seconds=0.0)
    report("training", 1, 2)
    report("training", 2, 2)
    assert len(seen) == 2
