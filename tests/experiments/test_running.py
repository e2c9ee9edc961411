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
from corrvae.experiments.records import read_record, write_record
from corrvae.experiments.reproduce import choose_recipe, demo, reproduce
from corrvae.experiments.running import Job, peak_megabytes, perform, run_in_process
from support.experiments import made_record, tiny_job, tiny_recipe


@pytest.fixture
def tiny(monkeypatch):
    """Recipes of a size for tests, run in this process; the jobs begun."""
    begun = []

    def start(job, *, threads, progress):
        begun.append((job.entry.model, job.seed))
        return perform(job)

    monkeypatch.setattr(module, "find_recipe", tiny_recipe)
    monkeypatch.setattr(module, "run_in_process", start)
    return begun


@pytest.fixture
def idle(monkeypatch):
    """Nothing is run."""
    monkeypatch.setattr(module, "run_in_process", lambda job, **_: pytest.fail(f"{job.title} was run"))


def test_what_has_a_record_is_not_run_again(tiny, tmp_path):
    options = {"recipe": "quick", "seeds": 2, "out": tmp_path, "quiet": True}
    first = reproduce("matching", **options)
    assert tiny == [(model, seed) for seed in (0, 1) for model in ("vae", "ind", "corr", "lsa")]
    paths = sorted(tmp_path.glob("*/*/*/*.json"))
    before = [path.read_bytes() for path in paths]
    tiny.clear()
    assert reproduce("matching", **options).records == first.records
    assert tiny == []
    paths[3].unlink()
    third = reproduce("matching", **options)
    assert len(tiny) == 1
    assert [path.read_bytes() for path in paths if path is not paths[3]] == before[:3] + before[4:]
    assert [record.scores for record in third.records] == [record.scores for record in first.records]
    assert not (tmp_path / ".partial").exists()


def test_a_failure_does_not_stop_the_others(tiny, tmp_path, monkeypatch):
    def start(job, **_):
        if job.entry.model in ("vae", "corr"):
            raise CorrvaeError("it rained") if job.entry.model == "vae" else RuntimeError("a fault")
        return perform(job)

    monkeypatch.setattr(module, "run_in_process", start)
    tally = reproduce("matching", recipe="quick", out=tmp_path, quiet=True)
    assert [record.model for record in tally.records] == ["ind", "lsa"]
    problem = "2 of the runs failed (VAE, seed 0: it rained; CVAE_corr, seed 0: RuntimeError: a fault)"
    assert tally.problem == problem


def test_a_bad_record_is_named_before_anything_runs(tiny, idle, tmp_path):
    path = tiny_job(tmp_path, "lsa").path
    path.parent.mkdir(parents=True)
    path.write_text("rubbish")
    with pytest.raises(DataFileError, match="cannot be read as the record") as caught:
        reproduce("matching", recipe="quick", out=tmp_path)
    assert caught.value.path == path


def test_a_record_of_other_settings_or_data_is_named(tmp_path):
    job = tiny_job(tmp_path, "lsa")
    record = perform(job)
    assert job.finished() == read_record(job.path)
    settings = {**record.settings, "parameters": {"n_components": 5}}
    write_record(tmp_path, made_record(**{**vars(record), "settings": settings}))
    expected = "other settings (parameters: {'n_components': 5}, and now {'n_components': 2}); remove it, or choose"
    with pytest.raises(DataFileError, match=re.escape(expected)):
        job.finished()
    data = {**record.data, "settings": {"name": "ml-20m", "min_ratings": 1000}}
    write_record(tmp_path, made_record(**{**vars(record), "data": data}))
    with pytest.raises(DataFileError, match=r"other settings \(data: .*ml-20m.*; remove it, or choose another --out"):
        job.finished()


def test_ctrl_c_keeps_what_is_finished(tiny, tmp_path, monkeypatch):
    def start(job, **_):
        if job.entry.model == "ind":
            raise KeyboardInterrupt
        return perform(job)

    monkeypatch.setattr(module, "run_in_process", start)
    with pytest.raises(KeyboardInterrupt):
        reproduce("matching", recipe="quick", out=tmp_path, quiet=True)
    assert [path.parent.name for path in tmp_path.glob("*/*/*/*.json")] == ["vae"]


def test_a_process_of_its_own_leaves_the_same_record(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    job, same = tiny_job(tmp_path / "a", "lsa"), tiny_job(tmp_path / "b", "lsa")
    run_in_process(job, threads=1)
    record, here = read_record(job.path), perform(same)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert record.scores == here.scores
    assert record.versions == here.versions
    assert record.machine["threads"] == 1
    assert 100 < record.peak_megabytes < 4000
    assert record.command == "corrvae reproduce matching --recipe quick"


def test_an_error_in_a_process_is_raised_here(tmp_path):
    job = tiny_job(tmp_path, "lsa")
    wrong = Job(**{**vars(job), "entry": type(job.entry)("m", "M", "no_method")})
    with pytest.raises(ValueError, match="'no_method' is no method that embeds points"):
        run_in_process(wrong, threads=1)


def test_ctrl_c_is_passed_on_and_leaves_a_checkpoint(tmp_path):
    job = tiny_job(tmp_path, "ind")
    longer = type(job.entry)(**{**vars(job.entry), "parameters": {**job.entry.parameters, "max_steps": 10**6}})
    endless = Job(**{**vars(job), "entry": longer})
    for seconds in (6, 12, 24, 48, 96):  # longer, if it was not training by then
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            run_in_process(endless, threads=1)
        if job.checkpoint.is_dir():
            break
    assert not job.path.exists()
    assert job.checkpoint.is_dir()


def test_a_killed_process_is_a_failed_run(tmp_path):
    def kill():
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        children[0].kill()  # while it imports

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(CorrvaeError, match=re.escape("its process ended (killed: out of memory?)")):
        run_in_process(tiny_job(tmp_path, "ind"), threads=1)


def test_peak_memory_grows_with_what_is_held():
    before = peak_megabytes()
    held = bytearray(b"x" * (200 << 20))
    assert peak_megabytes() >= max(before, 200)
    del held


# ---- reproduce


@pytest.mark.parametrize("task", ["clustering", "links", "matching"])
def test_a_table_a_file_and_records(task, tiny, tmp_path, capsys):
    out = tmp_path / "new" / "results"
    tally = reproduce(task, recipe="quick", seeds=2, out=out)
    assert (len(tally.records), tally.failures) == (8, [])
    printed = capsys.readouterr()
    assert f"{task} on" in printed.out
    assert "CVAE_ind, seed 0 (2 of 8)" in printed.err
    written = (out / f"{task}.md").read_text()
    assert re.search(r"\| CVAE_corr \| 0\.\d{4} ± 0\.\d{4} \| \d\.\d{4} ± \d\.\d{4} \|", written)
    again = reproduce(task, recipe="quick", seeds=2, out=out, quiet=True)
    assert again.records == tally.records
    assert capsys.readouterr() == ("", "")
    assert tally.records[0].command == f"corrvae reproduce {task} --seeds 2 --recipe quick"


def test_more_seeds_run_only_what_is_new(tiny, tmp_path):
    options = {"models": ["lsa"], "recipe": "quick", "out": tmp_path, "quiet": True}
    reproduce("matching", **options)
    first = tmp_path / "matching" / "quick" / "lsa" / "seed-0.json"
    before = first.read_bytes()
    assert len(reproduce("matching", **options, seeds=3).records) == 3
    assert first.read_bytes() == before


def test_the_demo_writes_a_report(tiny, tmp_path, capsys):
    assert len(demo(tmp_path).records) == 4
    assert f"The report is in {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert "CVAE_corr" in (tmp_path / "report.html").read_text()


def test_a_data_set_is_chosen_with_its_least_ratings():
    assert choose_recipe("matching", "recommended", dataset="ml-20m").data == {"name": "ml-20m", "min_ratings": 1000}
    elsewhere = choose_recipe("matching", "recommended", dataset="ciao", protocol="two-catalogues")
    assert elsewhere.name == "ciao-two-catalogues"
    assert elsewhere.data == {"name": "ciao", "min_ratings": 20, "min_items": 10, "protocol": "two-catalogues"}
    assert {"competing", "plda"} <= set(elsewhere.models)


@pytest.mark.parametrize(
    ("task", "options", "problem"),
    [
        ("cooking", {}, "there is no task 'cooking'"),
        ("links", {"models": ["vae", "gat"]}, "no model 'gat'; it has vae, ind, corr, corr+graph, sage"),
        ("clustering", {"models": []}, "models is empty; there are vae, ind, corr, sage"),
        ("links", {"seeds": 0}, "seeds must be 1 or more, not 0"),
        ("links", {"threads": 0}, "threads must be 1 or more, not 0"),
        ("links", {"recipe": "best"}, "there is no recipe 'best'"),
        ("clustering", {"dataset": "ml-1m"}, "dataset is for matching"),
        ("matching", {"dataset": "ml-1m", "recipe": "quick"}, "dataset is for matching"),
        ("links", {"dataset": "ciao"}, "dataset is for matching"),
        ("matching", {"dataset": "netflix"}, "there are ml-1m, ml-10m"),
    ],
)
def test_what_cannot_be_raises(task, options, problem, idle, tmp_path):
    with pytest.raises(ValueError, match=re.escape(problem)):
        reproduce(task, **options, out=tmp_path)


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
        reproduce("links", models=["degree"], data=tmp_path / "mine", out=tmp_path / "out")
    assert caught.value.path == tmp_path / "mine" / "epinions.zip"
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_named(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CorrvaeError, match="file"):
        reproduce("matching", models=["lsa"], recipe="quick", out=tmp_path / "file", quiet=True)


def test_importing_the_entry_points_loads_no_torch():
    import subprocess

    script = "import sys, corrvae.experiments.reproduce, corrvae.experiments.recipes; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
