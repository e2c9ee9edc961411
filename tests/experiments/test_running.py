import os
import signal
import sys
import threading

import pytest

from corrvae.errors import DataFileError
from corrvae.experiments import running
from corrvae.experiments.jobs import jobs_of
from corrvae.experiments.outcomes import keep_quiet
from corrvae.experiments.progress import Lines
from corrvae.experiments.running import RunError, in_own_process, run_jobs
from corrvae.experiments.worker import perform
from support.experiments import Stream, made_record, tiny_job, tiny_recipe


@pytest.fixture
def said():
    stream = Stream()
    return Lines(stream), lambda: stream.getvalue().splitlines()


def test_what_is_finished_is_not_run_again(tmp_path, said):
    display, lines = said
    jobs, begun, written = jobs_of(tiny_recipe(), 2, tmp_path, "again"), [], []

    def start(job, report):
        begun.append(job)
        perform(job, report)

    first = run_jobs(jobs, display, start, lambda: written.append(len(begun)))
    assert (begun, first.skipped, written) == (jobs, 0, [1, 2, 3, 4, 5, 6])
    bytes_before = [job.path.read_bytes() for job in jobs]
    second = run_jobs(jobs, display, start)
    assert (begun, second.skipped) == (jobs, 6)
    assert [job.path.read_bytes() for job in jobs] == bytes_before
    assert second.records == [job.finished() for job in jobs]
    assert lines()[-1].startswith("LSA, seed 1: finished before (reciprocal rank 0.")


def test_a_failure_does_not_stop_the_others(tmp_path, said):
    display, lines = said
    jobs = jobs_of(tiny_recipe(), 1, tmp_path, "again")

    def start(job, report):
        if job.entry.model == "vae":
            raise RunError("it rained")
        perform(job, report)

    tally = run_jobs(jobs, display, start)
    assert [record.model for record in tally.records] == ["ind", "lsa"]
    assert tally.failures == [(jobs[0], "it rained")]
    assert "VAE, seed 0: failed: it rained" in lines()


def test_a_damaged_record_is_named_before_anything_runs(tmp_path, said):
    jobs = jobs_of(tiny_recipe(), 1, tmp_path, "again")
    jobs[-1].path.parent.mkdir(parents=True)
    jobs[-1].path.write_text("rubbish")
    begun = []
    with pytest.raises(DataFileError, match="cannot be read as the record") as caught:
        run_jobs(jobs, said[0], lambda job, report: begun.append(job))
    assert caught.value.path == jobs[-1].path
    assert begun == []


def test_ctrl_c_keeps_what_is_finished(tmp_path, said):
    jobs = jobs_of(tiny_recipe(), 1, tmp_path, "again")

    def start(job, report):
        if job.entry.model == "ind":
            raise KeyboardInterrupt
        perform(job, report)

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, said[0], start)
    assert [job.path.exists() for job in jobs] == [True, False, False]


def test_a_process_of_its_own_gives_the_same_record(tmp_path):
    job, same = tiny_job(tmp_path / "a", "lsa"), tiny_job(tmp_path / "b", "lsa")
    seen = []
    in_own_process(threads=1)(job, lambda *said: seen.append(said))
    record, here = job.finished(), perform(same, keep_quiet)
    assert record.scores == here.scores
    assert record.versions == here.versions
    assert ("projecting", 0, None) in seen


def test_files_of_the_folder_one_is_in_are_not_taken_for_libraries(tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise SystemExit(5)")
    monkeypatch.chdir(tmp_path)
    job = tiny_job(tmp_path / "out", "lsa")
    in_own_process(threads=1)(job, keep_quiet)
    assert job.finished().machine["threads"] == 1


def script(tmp_path, text):
    """A stand-in for Python that is called as Python is, and does something else."""
    path = tmp_path / "stand-in"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
        ("raise SystemExit(3)", "ended with code 3 and said nothing"),
        ("""print('{"event": "failed", "problem": "no luck"}')""", "no luck"),
    ],
)
def test_a_process_that_fails_is_told(tmp_path, text, problem):
    with pytest.raises(RunError, match=problem):
        in_own_process(executable=script(tmp_path, text))(tiny_job(tmp_path), keep_quiet)


STUBBORN = """
import json, signal, sys, time
asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(1))
print(json.dumps({"event": "progress", "doing": "training", "done": 1, "total": 2}), flush=True)
while not asked:
    time.sleep(0.01)
time.sleep(0.3)  # a second request would be noticed
open(PATH, "w").write(str(len(asked)))
print(json.dumps({"event": "interrupted"}), flush=True)
"""


def test_ctrl_c_is_passed_on_once_and_waited_for(tmp_path):
    left = tmp_path / "left"

    def press(*_):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    start = in_own_process(executable=script(tmp_path, STUBBORN.replace("PATH", repr(str(left)))))
    with pytest.raises(KeyboardInterrupt):
        start(tiny_job(tmp_path), press)
    assert left.read_text() == "1"


def test_threads_are_told_to_the_process(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    text = """
import json, os
print(json.dumps({"event": "failed", "problem": os.environ["OMP_NUM_THREADS"] + os.environ["NUMBA_NUM_THREADS"]}))
"""
    with pytest.raises(RunError, match="33"):
        in_own_process(threads=3, executable=script(tmp_path, text))(tiny_job(tmp_path), keep_quiet)


def test_scores_are_said_by_their_names():
    assert running._said(made_record()) == "NMI 0.2500"
