import multiprocessing
import os
import re
import signal
import sys
import threading
import time

import pytest

from corrvae.errors import CorrvaeError, DataFileError
from corrvae.experiments import reproduce as module
from corrvae.experiments import running
from corrvae.experiments.records import read_record, write_record
from corrvae.experiments.reproduce import choose_recipe, demo, reproduce
from corrvae.experiments.running import RunError, jobs_of, peak_megabytes, perform, run_in_process, run_jobs
from support.experiments import made_record, tiny_job, tiny_recipe


@pytest.fixture
def tiny(monkeypatch):
    """Recipes of a size for tests."""
    monkeypatch.setattr(module, "find_recipe", tiny_recipe)


def never(job, report):
    pytest.fail(f"{job.title} was run")


def quiet(doing, done, total):
    pass


def run_all(jobs, start):
    return run_jobs(jobs, start=start, quiet=True)


def test_what_has_a_record_is_not_run_again(tmp_path):
    jobs, begun = jobs_of(tiny_recipe(), 2, tmp_path, "again"), []

    def start(job, report):
        begun.append(job)
        perform(job, report)

    first = run_all(jobs, start)
    assert (begun, first.problem) == (jobs, None)
    bytes_before = [job.path.read_bytes() for job in jobs]
    second = run_all(jobs, never)
    assert len(second.records) == len(jobs) == 8
    assert [job.path.read_bytes() for job in jobs] == bytes_before
    assert second.records == first.records
    jobs[3].path.unlink()
    begun.clear()
    third = run_all(jobs, start)
    assert begun == [jobs[3]]
    del bytes_before[3]
    assert [job.path.read_bytes() for job in jobs if job is not jobs[3]] == bytes_before
    assert third.records[3].scores == first.records[3].scores
    assert not (tmp_path / ".partial").exists()


def test_a_failure_does_not_stop_the_others(tmp_path):
    jobs = jobs_of(tiny_recipe(), 1, tmp_path, "again")

    def start(job, report):
        if job.entry.model in ("vae", "corr"):
            raise RunError("it rained")
        perform(job, report)

    tally = run_all(jobs, start)
    assert [record.model for record in tally.records] == ["ind", "lsa"]
    assert tally.problem == "2 of the runs failed (VAE, seed 0: it rained; CVAE_corr, seed 0: it rained)"


def test_a_bad_record_is_named_before_anything_runs(tmp_path):
    jobs = jobs_of(tiny_recipe(), 1, tmp_path, "again")
    jobs[-1].path.parent.mkdir(parents=True)
    jobs[-1].path.write_text("rubbish")
    with pytest.raises(DataFileError, match="cannot be read as the record") as caught:
        run_all(jobs, never)
    assert caught.value.path == jobs[-1].path


def test_a_record_of_other_settings_is_named(tmp_path):
    job = tiny_job(tmp_path, "lsa")
    record = perform(job, quiet)
    assert job.finished() == read_record(job.path)
    settings = {**record.settings, "parameters": {"n_components": 5}}
    write_record(tmp_path, made_record(**{**vars(record), "settings": settings}))
    expected = "other settings (parameters: {'n_components': 5}, and now {'n_components': 2}); remove it, or choose"
    with pytest.raises(DataFileError, match=re.escape(expected)):
        job.finished()


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    jobs = jobs_of(tiny_recipe(), 1, tmp_path, "again")

    def start(job, report):
        if job.entry.model == "ind":
            raise KeyboardInterrupt
        perform(job, report)

    with pytest.raises(KeyboardInterrupt):
        run_all(jobs, start)
    assert [job.path.exists() for job in jobs] == [True, False, False, False]


def test_a_process_of_its_own_leaves_the_same_record(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    job, same = tiny_job(tmp_path / "a", "lsa"), tiny_job(tmp_path / "b", "lsa")
    seen = []
    run_in_process(job, lambda *progress: seen.append(progress), threads=1)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    record, here = job.finished(), perform(same, quiet)
    assert record.scores == here.scores
    assert record.versions == here.versions
    assert record.machine["threads"] == 1
    assert ("projecting", 0, None) in seen
    assert 100 < record.peak_megabytes < 4000
    assert record.command == "corrvae reproduce matching --recipe quick"


def test_ctrl_c_is_passed_on_and_the_run_resumes(tmp_path):
    job = tiny_job(tmp_path, "ind")
    endless = running.Job(**{**vars(job), "entry": _longer(job.entry, 10**6)})
    pressed = []

    def press(doing, done, total):
        if doing == "training" and not pressed:
            pressed.append(done)
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_in_process(endless, press, threads=1)
    assert not job.path.exists()
    assert job.checkpoint.is_dir()
    begun = []
    with pytest.raises(KeyboardInterrupt):
        perform(endless, lambda doing, done, total: _interrupt_at_first(doing, done, begun))
    assert begun[0] > 1  # steps of the process before are not taken again


def _longer(entry, max_steps):
    return type(entry)(**{**vars(entry), "parameters": {**entry.parameters, "max_steps": max_steps}})


def _interrupt_at_first(doing, done, begun):
    if doing == "training" and not begun:
        begun.append(done)
        signal.raise_signal(signal.SIGINT)


class Channel(list):
    """What a process sends to the one that started it."""

    send = list.append


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (None, ("done",)),
        (KeyboardInterrupt(), ("interrupted",)),
        (ValueError("it rained"), ("failed", "it rained")),
        (MemoryError(), ("failed", "MemoryError: ")),
        (RuntimeError("a fault"), ("failed", "RuntimeError: a fault")),
        (BrokenPipeError(), ("progress", "training", 1, 9)),  # nobody listens any more
    ],
)
def test_how_a_process_ends_is_sent(error, sent, monkeypatch, tmp_path):
    def work(job, report):
        report("training", 1, 9)
        if error is not None:
            raise error

    monkeypatch.setattr(running, "perform", work)
    monkeypatch.setattr(os, "setsid", lambda: None)
    channel = Channel()
    running._serve(tiny_job(tmp_path), channel, None)
    assert channel[0] == ("progress", "training", 1, 9)
    assert channel[-1] == sent
    assert len(channel) <= 2


def test_a_killed_process_is_a_failed_run(tmp_path):
    def kill():
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        children[0].kill()  # while it imports

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(RunError, match=re.escape("ended with code -9 (killed: out of memory?)")):
        run_in_process(tiny_job(tmp_path, "ind"), quiet, threads=1)


def test_peak_memory_grows_with_what_is_held():
    before = peak_megabytes()
    held = bytearray(b"x" * (200 << 20))
    assert peak_megabytes() >= max(before, 200)
    del held


# ---- reproduce


@pytest.mark.parametrize("task", ["clustering", "links", "matching"])
def test_a_table_a_file_and_records(task, tiny, tmp_path, capsys):
    out = tmp_path / "new" / "results"
    tally = reproduce(task, recipe="quick", seeds=2, out=out, start=perform)
    assert (len(tally.records), tally.failures) == (8, [])
    printed = capsys.readouterr()
    assert f"{task} on" in printed.out
    assert "CVAE_ind, seed 0 (2 of 8)" in printed.err
    written = (out / f"{task}.md").read_text()
    assert re.search(r"\| CVAE_corr \| 0\.\d{4} ± 0\.\d{4} \| \d\.\d{4} ± \d\.\d{4} \|", written)
    again = reproduce(task, recipe="quick", seeds=2, out=out, start=never, quiet=True)
    assert again.records == tally.records
    assert capsys.readouterr() == ("", "")
    assert tally.records[0].command == f"corrvae reproduce {task} --seeds 2 --recipe quick"


def test_more_seeds_run_only_what_is_new(tiny, tmp_path):
    options = {"models": ["lsa"], "recipe": "quick", "out": tmp_path, "start": perform, "quiet": True}
    reproduce("matching", **options)
    first = tmp_path / "matching" / "quick" / "lsa" / "seed-0.json"
    before = first.read_bytes()
    assert len(reproduce("matching", **options, seeds=3).records) == 3
    assert first.read_bytes() == before


def test_the_demo_writes_a_report(monkeypatch, tiny, tmp_path, capsys):
    monkeypatch.setattr(module, "run_in_process", lambda job, report, *, threads: perform(job, report))
    assert len(demo(tmp_path).records) == 4
    assert f"The report is in {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert "CVAE_corr" in (tmp_path / "report.html").read_text()


def test_a_data_set_is_chosen_with_its_least_ratings():
    assert choose_recipe("matching", "recommended", dataset="ml-20m").data == {"name": "ml-20m", "min_ratings": 1000}


@pytest.mark.parametrize(
    ("task", "options", "problem"),
    [
        ("cooking", {}, "there is no task 'cooking'"),
        ("links", {"models": ["vae", "gat"]}, "no model 'gat'; it has vae, ind, corr, corr+graph, ind+graph"),
        ("clustering", {"models": []}, "models is empty; there are vae, ind, corr, sage"),
        ("links", {"seeds": 0}, "seeds must be 1 or more, not 0"),
        ("links", {"threads": 0}, "threads must be 1 or more, not 0"),
        ("links", {"recipe": "best"}, "there is no recipe 'best'"),
        ("clustering", {"dataset": "ml-1m"}, "dataset is for matching"),
        ("matching", {"dataset": "ml-1m", "recipe": "quick"}, "dataset is for matching"),
        ("matching", {"dataset": "netflix"}, "there are ml-1m, ml-10m"),
    ],
)
def test_what_cannot_be_raises(task, options, problem, tmp_path):
    with pytest.raises(ValueError, match=re.escape(problem)):
        reproduce(task, **options, out=tmp_path, start=never)


def test_without_torch_geometric_its_models_are_left_out_or_named(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert set(choose_recipe("clustering", "paper").models) == {"vae", "ind", "corr", "pca", "truth"}
    with pytest.raises(
        ValueError, match=re.escape("sage cannot run without torch_geometric: pip install 'corrvae[baselines]'")
    ):
        choose_recipe("clustering", "paper", models=["sage", "ind"])
    assert choose_recipe("clustering", "paper", models=["ind"]).models == ("ind",)


def test_missing_data_name_the_command_that_gets_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", "elsewhere")
    with pytest.raises(DataFileError, match="get it with: corrvae data get epinions") as caught:
        reproduce("links", models=["degree"], data=tmp_path / "mine", out=tmp_path / "out", start=never)
    assert caught.value.path == tmp_path / "mine" / "epinions.zip"
    assert not (tmp_path / "out").exists()


def test_bad_records_that_were_not_asked_for_are_named_before_anything_runs(tiny, tmp_path):
    path = tmp_path / "matching" / "recommended" / "older" / "seed-7.json"
    path.parent.mkdir(parents=True)
    path.write_text("rubbish")
    with pytest.raises(DataFileError, match="cannot be read as the record") as caught:
        reproduce("matching", models=["lsa"], recipe="quick", out=tmp_path, start=never)
    assert caught.value.path == path


def test_records_of_other_data_are_not_mixed_in(tiny, tmp_path):
    data = {"name": "other", "settings": {"name": "ml-20m", "min_ratings": 1000}}
    record = made_record(task="matching", recipe="quick", model="older", data=data, scores={"reciprocal_rank": 0.5})
    path = write_record(tmp_path, record)
    with pytest.raises(DataFileError, match=r"other data .*ml-20m.*; remove it, or choose another --out") as caught:
        reproduce("matching", models=["lsa"], recipe="quick", out=tmp_path, start=never)
    assert caught.value.path == path


def test_a_folder_that_cannot_be_made_is_named(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CorrvaeError, match="file"):
        reproduce("matching", models=["lsa"], recipe="quick", out=tmp_path / "file", start=perform, quiet=True)


def test_importing_the_entry_points_loads_no_torch():
    import subprocess

    script = "import sys, corrvae.experiments.reproduce, corrvae.experiments.recipes; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
