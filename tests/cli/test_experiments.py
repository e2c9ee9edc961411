import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corrvae.cli import app
from corrvae.datasets import getting
from corrvae.experiments import reproduce as reproducing
from corrvae.experiments.records import write_record
from corrvae.experiments.running import RunError
from corrvae.experiments.worker import perform
from corrvae.shards.sorting import Spool
from nursery import Call
from support.experiments import tiny_recipe
from support.results import make_record


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    for folder in (taken, taken / "below"):
        result = CliRunner().invoke(app, ["demo", "--out", str(folder)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"{folder}: cannot be written (")
        assert len(result.stderr.splitlines()) == 1


def test_a_report_is_written_and_its_place_told(tmp_path):
    write_record(tmp_path, make_record("links", "vae"))
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert (result.exit_code, result.output) == (0, f"The report is in {tmp_path / 'report.html'}\n")
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_report_tells_programs_where_it_is_and_keeps_quiet(tmp_path):
    write_record(tmp_path, make_record("links", "vae"))
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"out": str(tmp_path / "report.html")}
    (tmp_path / "report.html").unlink()
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--quiet"])
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "report.html").is_file()
    result = CliRunner().invoke(app, ["report", str(tmp_path / "nowhere"), "--quiet"])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


def test_a_folder_without_results_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = CliRunner().invoke(app, ["report", str(folder)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"{folder}: ")
        assert len(result.stderr.splitlines()) == 1


@pytest.fixture
def here(monkeypatch):
    """Runs of tiny recipes, in this process; gives the function that starts them, to be replaced."""
    monkeypatch.setattr(reproducing, "find_recipe", tiny_recipe)

    def replace(start):
        monkeypatch.setattr(reproducing, "in_own_process", lambda threads: start)

    replace(perform)
    return replace


def test_demo_writes_where_it_is_told(here, tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "CVAE_ind" in result.stdout
    assert (tmp_path / "report.html").is_file()


def test_demo_keeps_quiet(here, tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--quiet"])
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "report.html").is_file()


def reproduce(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_reproduce_shows_the_table_and_keeps_the_results(here, tmp_path):
    result = reproduce("matching", "--quick", "--models", "vae, lsa", "--seeds", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "on MovieLens-20M" in result.stdout
    assert "0.3498 ± 0.0167" in result.stdout
    assert result.stderr.splitlines()[0] == "VAE, seed 0 (1 of 4)"
    assert (tmp_path / "matching.md").is_file()
    again = reproduce("matching", "--quick", "--models", "vae,lsa", "--seeds", 2, "--out", tmp_path)
    assert again.stderr.count("finished before") == 4


def test_reproduce_keeps_quiet_but_for_errors(here, tmp_path):
    result = reproduce("matching", "--quick", "--models", "lsa", "--out", tmp_path, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert "LSA" in (tmp_path / "matching.md").read_text()
    wrong = reproduce("matching", "--quick", "--models", "gat", "--out", tmp_path, "--quiet")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("the quick recipe for matching has no model 'gat'")

    def failing(job, report):
        raise RunError("it rained")

    here(failing)
    result = reproduce("matching", "--quick", "--models", "vae", "--out", tmp_path, "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "1 run failed (VAE, seed 0: it rained)\n"


def test_termination_is_a_request_to_stop(here, tmp_path):
    """Else the process that trains would go on alone."""
    here(lambda job, report: signal.raise_signal(signal.SIGTERM))
    result = reproduce("matching", "--quick", "--models", "vae", "--out", tmp_path)
    assert result.exit_code == 1
    assert "stopped; what is finished is kept" in result.stderr


def test_a_run_in_its_own_process_is_quiet_too(tmp_path):
    command = [sys.executable, "-m", "corrvae", "reproduce", "clustering", "--quick", "--models", "pca", "--seeds", "1"]
    done = subprocess.run([*command, "--out", tmp_path, "--quiet"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "clustering.md").is_file()


def test_reproduce_refuses_in_one_sentence(here, tmp_path):
    wrong = reproduce("matching", "--quick", "--models", "vae,gat", "--out", tmp_path)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr == "the quick recipe for matching has no model 'gat'; it has vae, ind, lsa\n"


@pytest.mark.parametrize("models", ["", ",", " , "])
def test_no_models_are_refused(models, here, tmp_path):
    result = reproduce("matching", "--quick", "--models", models, "--out", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "--models names no model; there are vae, ind, lsa\n"


def test_help_lists_the_models():
    shown = " ".join(reproduce("--help").output.replace("│", " ").split())
    for task, models in (("clustering", "vae, ind, corr, sage, vgae, pca, truth"), ("matching", "vae, ind, corr, lsa")):
        assert f"for {task} {models}" in shown


@pytest.mark.parametrize("command", ["demo", "reproduce clustering --quick"])
def test_ctrl_c_while_importing_is_told_too(command, tmp_path):
    script = f"""
import builtins
from corrvae.cli import app
ask = builtins.__import__
def interrupted(name, *rest):
    if name in ("corrvae.demo", "corrvae.experiments.reproduce"):
        raise KeyboardInterrupt
    return ask(name, *rest)
builtins.__import__ = interrupted
app({[*command.split(), "--out", str(tmp_path)]!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("stopped; what is finished is kept")


def test_reproduce_says_how_to_get_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", "elsewhere")  # so that what the command sets is undone
    result = reproduce("links", "--data", tmp_path, "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    expected = f"epinions is not there yet; get it with: CORRVAE_DATA={tmp_path} corrvae data get epinions"
    assert result.stderr.splitlines()[-1].endswith(expected)


def test_data_get_tells_programs_where_it_is_and_keeps_quiet(tmp_path, monkeypatch):
    bars = []

    def get(name, source, *, progress):
        bars.append(progress)
        return getting.GotData(tmp_path / name, False, "for research")

    monkeypatch.setattr(getting, "get", get)
    told, quiet = (CliRunner().invoke(app, ["data", "get", "ml-1m", option]) for option in ("--json", "--quiet"))
    expected = {"name": "ml-1m", "path": str(tmp_path / "ml-1m"), "was_there": False, "terms": "for research"}
    assert (told.exit_code, told.stderr, json.loads(told.stdout)) == (0, "", expected)
    assert (quiet.exit_code, quiet.output) == (0, "")
    assert bars == [None, False]


def test_a_damaged_record_is_named(here, tmp_path):
    path = tmp_path / "matching" / "quick" / "lsa" / "seed-0.json"
    path.parent.mkdir(parents=True)
    path.write_text("rubbish")
    result = reproduce("matching", "--quick", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{path}: cannot be read as the record of a run")


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(here, tmp_path):
    def interrupted(job, report):
        if job.entry.model == "ind":
            raise KeyboardInterrupt
        perform(job, report)

    here(interrupted)
    result = reproduce("matching", "--quick", "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("stopped; what is finished is kept")
    assert "VAE" in (tmp_path / "matching.md").read_text()
    here(perform)
    result = reproduce("matching", "--quick", "--out", tmp_path)
    assert result.exit_code == 0
    assert result.stderr.count("finished before") == 1


def test_a_failed_run_is_told_at_the_end(here, tmp_path):
    def failing(job, report):
        if job.entry.model == "ind":
            raise RunError("it rained")
        perform(job, report)

    here(failing)
    result = reproduce("matching", "--quick", "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "1 run failed (CVAE_ind, seed 0: it rained)"
    assert "LSA" in result.stdout


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
UNWRITTEN = (3, "standard output: no space left on device\n")


@FULL
def test_a_report_whose_place_cannot_be_told_is_one_sentence(nursery, tmp_path):
    write_record(tmp_path, make_record("links", "vae"))
    arguments = {"arguments": ["report", str(tmp_path)]}
    (ending,) = nursery.run(Call("fragile:program", arguments, stdout="/dev/full"))
    assert (ending.code, ending.errors) == UNWRITTEN


@FULL
def test_data_whose_place_cannot_be_told_are_one_sentence(tmp_path):
    code = """
from types import SimpleNamespace
from corrvae.cli import app
from corrvae.datasets import getting
getting.get = lambda name, source, progress: SimpleNamespace(was_there=True, path="there", terms="free")
app(["data", "get", "ml-1m"])
"""
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (result.returncode, result.stderr) == UNWRITTEN


def shard(*arguments):
    return CliRunner().invoke(app, ["data", "shard", *map(str, arguments)])


@pytest.fixture
def ratings(tmp_path):
    rows = (f"u{k % 9},i{k % 25},{k % 5 + 1}\n" for k in range(200))
    (tmp_path / "a.csv").write_text("who,item,stars\n" + "".join(rows))
    return tmp_path / "a.csv"


def test_shards_are_made_and_told(ratings, tmp_path):
    result = shard(ratings, "--out", tmp_path / "shards")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        f"{ratings}: read as a long table: id=who, item=item, value=stars",
        f"200 entries, in 9 rows of 25 features, are in {tmp_path / 'shards'}",
    ]
    result = shard(ratings, "--out", tmp_path / "shards")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{tmp_path / 'shards'}: holds shards already; --overwrite replaces them\n"
    result = shard(ratings, "--out", tmp_path / "shards", "--overwrite", "--json")
    counts = {"rows": 9, "columns": 25, "entries": 200, "shards": 1}
    assert json.loads(result.stdout) == {"out": str(tmp_path / "shards"), **counts}
    assert shard(ratings, "--out", tmp_path / "quiet", "--quiet").output == ""


def test_commands_take_shards_as_they_take_a_file(ratings, tmp_path):
    shard(ratings, "--out", tmp_path / "shards")
    friends = tmp_path / "friends.csv"
    friends.write_text("source,target\n" + "".join(f"u{k},u{k + 1}\n" for k in range(8)))
    found = []
    for features in (ratings, tmp_path / "shards"):
        run = tmp_path / f"run-{features.name}"
        model = ["--posterior", "pairwise", "--components", "2", "--hidden", "6", "--pair-network", "bilinear"]
        for more in ([], ["--overwrite"]):
            files = ["--features", str(features), "--graph", str(friends), "--out", str(run)]
            result = CliRunner().invoke(app, ["fit", *files, *model, "--steps", "3", "--quiet", *more])
            assert result.exit_code == 0, result.output
        asked = (["embed", run], ["embed", run, "--features", features], ["neighbors", run, "-k", 2])
        found.append([CliRunner().invoke(app, [*map(str, command), "--quiet"]).stdout for command in asked])
    assert found[0] == found[1]
    assert all(text.count("\n") > 9 for text in found[0])
    assert (tmp_path / "run-shards" / "features" / "config.json").is_file()


def test_a_full_disk_ends_shards_with_3(ratings, tmp_path, monkeypatch):
    def full(self, *_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "append", full)
    result = shard(ratings, "--out", tmp_path / "shards")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1] == f"{tmp_path / 'shards'}: no space left on device"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
