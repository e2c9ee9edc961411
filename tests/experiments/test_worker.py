import os
import platform
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import corrvae
from corrvae.experiments import worker
from corrvae.experiments.outcomes import keep_quiet
from corrvae.experiments.records import read_record
from corrvae.experiments.worker import library_versions, perform, serve, source_code, throttled
from support.experiments import tiny_job


@pytest.mark.parametrize("task", ["clustering", "links", "matching"])
def test_a_job_leaves_its_record_and_nothing_else(task, tmp_path):
    job = tiny_job(tmp_path, task=task, seed=2)
    record = perform(job, keep_quiet)
    assert read_record(job.path).scores == record.scores
    assert read_record(job.path).data["settings"] == job.data
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


def test_the_code_of_the_source_changes_with_it(tmp_path):
    (tmp_path / "a.py").write_text("one")
    first = source_code(tmp_path)
    (tmp_path / "notes.txt").write_text("no source")
    assert source_code(tmp_path) == first
    (tmp_path / "a.py").write_text("two")
    second = source_code(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, source_code(tmp_path)}) == 3
    assert library_versions()["source"] == source_code(Path(corrvae.__file__).parent)


def test_the_machine_is_told(tmp_path):
    record = perform(tiny_job(tmp_path, "lsa"), keep_quiet)
    assert record.machine == {"threads": torch.get_num_threads(), "processors": os.cpu_count()}


def test_memory_that_is_held_is_counted():
    """In a process of its own, whose peak is not far above what it holds."""
    script = """
from corrvae.experiments.worker import peak_megabytes
before = peak_megabytes()
held = b"x" * (200 * 2**20)
print(peak_megabytes() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 150 < float(done.stdout) < 250


@pytest.fixture
def meters(monkeypatch):
    """A clock and a meter of memory that are set by hand."""
    shown = {"seconds": 1000.0, "megabytes": 50.0}
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: shown["seconds"]))
    monkeypatch.setattr(worker, "peak_megabytes", lambda: shown["megabytes"])
    return shown


def test_time_and_memory_are_those_of_the_run(tmp_path, meters):
    def report(doing, done, total):
        if doing == "projecting":
            meters.update(seconds=meters["seconds"] + 42.5, megabytes=321.5)

    record = perform(tiny_job(tmp_path, "lsa"), report)
    assert (record.seconds, record.peak_megabytes) == (42.5, 321.5)


def test_what_was_taken_before_an_interruption_counts(tmp_path, meters):
    job = tiny_job(tmp_path)

    def press(doing, done, total):
        if doing == "training" and done == 3:
            meters.update(seconds=meters["seconds"] + 100.0, megabytes=700.0)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        perform(job, press)
    meters.update(seconds=0.0, megabytes=60.0)  # of another process, much later
    begun = []

    def go_on(doing, done, total):
        if doing == "training":
            begun.append(done)
            meters["seconds"] += 1.0

    record = perform(job, go_on)
    assert begun == [4, 5, 6]
    assert (record.seconds, record.peak_megabytes) == (103.0, 700.0)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [job.path]
    assert not (tmp_path / ".partial").exists()


def test_a_run_that_begins_anew_counts_itself_alone(tmp_path, meters):
    job = tiny_job(tmp_path)

    def fail(doing, done, total):
        meters["seconds"] += 100.0
        raise ValueError("it rained")

    with pytest.raises(ValueError, match="it rained"):
        perform(job, fail)
    assert perform(job, keep_quiet).seconds == 0.0


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


def test_a_process_that_nobody_listens_to_stops_though_ctrl_c_is_ignored(tmp_path, monkeypatch):
    done = []

    class Gone(StringIO):
        def write(self, text):
            raise BrokenPipeError

    def perform(job, report):
        report("training", 1, 2)
        done.append(job)

    monkeypatch.setattr(worker, "perform", perform)
    monkeypatch.setattr(sys, "stdin", StringIO(tiny_job(tmp_path).to_json() + "\n"))
    monkeypatch.setattr(sys, "stdout", Gone())
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == []


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
