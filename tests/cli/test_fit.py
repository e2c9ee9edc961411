import csv
import json
import signal
import subprocess
import sys
import time
import tomllib
from inspect import signature

import numpy as np
import pytest

from corrvae import CorrelatedVAE, Independent, Pairwise, load
from corrvae.cli import app
from corrvae.cli import fit as fit_module
from corrvae.cli.fit import _OF_FAMILIES, fit
from corrvae.errors import TrainingError
from support.commands import failure, run
from support.runs import make_frame, make_graph, write_rows

SMALL = (
    "--n-components",
    2,
    "--hidden",
    8,
    "--max-steps",
    40,
    "--batch-size",
    16,
    "--random-state",
    0,
    "--device",
    "cpu",
)


@pytest.fixture
def files(tmp_path):
    """A table and a graph with an id that the table lacks, and where to write."""
    make_frame(60).rename_axis("id").to_csv(tmp_path / "people.csv")
    pairs = make_graph([f"p{k}" for k in range(60)]).id_pairs.tolist()
    write_rows(tmp_path / "friends.csv", [("source", "target"), *pairs, ("p1", "ghost")])
    return tmp_path / "people.csv", tmp_path / "friends.csv", "--out", tmp_path / "run"


def contents(folder):
    """The numbers of a model folder by the files' names without their generation."""
    names = ("model", "embedding", "stddev", "graph.edges", "graph.weights")
    return {path.name.rsplit("-")[0]: path.read_bytes() for path in folder.iterdir() if path.name.startswith(names)}


def evaluations(folder):
    """The rows of history.csv without their times."""
    with (folder / "history.csv").open() as stream:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]


@pytest.fixture
def at_step(monkeypatch):
    """Call a function after a step of training."""

    def install(step, act):
        monkeypatch.setattr(fit_module, "_progress", lambda: lambda p: act() if p.step == step else None)

    return install


def test_defaults_are_those_of_python():
    options = signature(fit).parameters
    estimator = {n: p.default for n, p in signature(CorrelatedVAE).parameters.items() if n != "warm_start"}
    assert {name: options[name].default for name in estimator} == estimator
    pairwise = {name: parameter.default for name, parameter in signature(Pairwise).parameters.items()}
    shared = {name: options[name].default for name in ("contrast", "rivals")}
    assert {own: options[name].default for name, own in _OF_FAMILIES["pairwise"].items()} | shared == pairwise
    assert {name: parameter.default for name, parameter in signature(Independent).parameters.items()} == shared


def test_options_are_those_of_python():
    named = {f"--{name.replace('_', '-')}" for name in signature(CorrelatedVAE).parameters} - {"--warm-start"}
    shown = run("fit", "--help").stdout
    assert all(name in shown for name in named)


def test_two_files_become_a_model(files, tmp_path):
    result = run("fit", *files, *SMALL)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "run"
    assert result.stdout == f"The model is in {folder}: 60 points in 2 dimensions (gaussian likelihood, 40 steps)\n"
    assert result.stderr.startswith(f"{tmp_path / 'people.csv'}: 60 rows of 5 features\n")
    assert "ghost" in result.stderr
    assert "likelihood = gaussian: some features are negative" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("step 40 of 40 (epoch")
    model = load(folder)
    assert (model.ids_[-1], model.graph_.n_edges, model.n_steps_) == ("p59", 60, 40)
    assert model.feature_names_in_.tolist() == [f"f{k}" for k in range(5)]
    assert [float(row["total"]) for row in evaluations(folder)] == pytest.approx(model.history_["total"].tolist())
    assert not (folder / "checkpoint").exists()


def test_the_same_files_give_the_model_of_python(files, tmp_path):
    run("fit", *files, *SMALL)
    frame, graph = make_frame(60), make_graph([f"p{k}" for k in range(60)])
    model = CorrelatedVAE(2, hidden=(8,), max_steps=40, batch_size=16, random_state=0, device="cpu")
    np.testing.assert_array_equal(load(tmp_path / "run").embedding_, model.fit(frame, graph=graph).embedding_)


def test_a_seed_is_drawn_and_recorded(files, tmp_path):
    small = [str(option) for option in SMALL if option not in ("--random-state", 0)]
    result = run("fit", *files, *small)
    drawn = tomllib.loads((tmp_path / "run" / "run.toml").read_text())["random_state"]
    assert f"random_state {drawn}\n" in result.stderr
    again = tmp_path / "again"
    run("fit", "--config", tmp_path / "run" / "run.toml", "--out", again, "--quiet")
    assert contents(again) == contents(tmp_path / "run")


def test_options_reach_the_model(files, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('pair-hidden = [5]\nwarmup_steps = 3\nn_components = 9\nnetwork = "bilinear"\ntau = 0.5\n')
    more = "--family pairwise --gamma-kl 0 --gamma-mi 30 --pair-dropout 0.5 --pair-normalize l2 --tau learned --quiet"
    result = run("fit", *files, *SMALL, *more.split(), "--network", "perceptron", "--config", config)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    model = load(tmp_path / "run")
    assert (model.n_components, model.warmup_steps, model.tau) == (2, 3, "learned")
    expected = {"network": "perceptron", "gamma_kl": 0.0, "gamma_mi": 30.0, "hidden": (5,), "dropout": 0.5}
    expected |= {"inputs": "features", "non_edges": None}
    competing = {"contrast": 0.0, "rivals": "all"}
    assert model.family.get_params() == {**expected, "normalize": "l2", "pair_batch": None, **competing}


def test_candidates_compete_from_a_linear_start(files, tmp_path):
    result = run("fit", *files, *SMALL, "--init", "linear", "--contrast", 5, "--rivals", "disjoint", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    model = load(tmp_path / "run")
    assert (model.init, model.family.get_params()) == ("linear", {"contrast": 5.0, "rivals": "disjoint"})
    assert "contrast" in model.history_.columns


def test_adaptive_forests_are_asked_about_by_edge(files, tmp_path):
    result = run("fit", *files, *SMALL, "--forests", "adaptive", "--eta", 0.5)
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "run")
    assert model.forests.eta == 0.5
    found = list(csv.DictReader(run("edges", tmp_path / "run").stdout.splitlines()))
    assert len(found) == model.graph_.n_edges
    assert list(found[0]) == ["source", "target", "weight", "conductance", "edge_term"]
    for option, value, of in (("--eta", 0.5, "--forests adaptive"), ("--rivals", "nearest", "--contrast")):
        refused = run("fit", *files, *SMALL, option, value, "--overwrite")
        assert refused.exit_code == 2
        assert f"{option} is an option of {of}" in refused.stderr


def test_a_summary_is_a_document(files, tmp_path):
    result = run("fit", *files, *SMALL, "--json", "--quiet", "--validation-fraction", 0.2)
    summary = json.loads(result.stdout)
    assert summary["out"] == str(tmp_path / "run")
    assert summary["training"]["steps"] == 40
    assert summary["training"]["validation_total"] < 0
    assert summary["parameters"]["random_state"] == 0
    assert summary["data"]["edges"] == 60


def test_ratings_are_read_as_ratings(tmp_path):
    rng = np.random.default_rng(0)
    rated = [(f"u{u}", f"m{m}", rng.integers(1, 6)) for u in range(40) for m in rng.choice(50, 5, replace=False)]
    write_rows(tmp_path / "ratings.csv", [("user", "movie", "rating"), *rated])
    assert run("fit", tmp_path / "ratings.csv", "--out", tmp_path / "run", *SMALL).exit_code == 0
    model = load(tmp_path / "run")
    assert (model.likelihood_, model.normalize_, model.graph_) == ("multinomial", "l2", None)


@pytest.mark.parametrize("between", ["::", "\t", " ", ","])
def test_ordinary_files_need_no_option(between, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    rated = [(u, m, rng.integers(1, 6)) for u in range(1, 41) for m in 100 + rng.choice(50, 5, replace=False)]
    trust = [*((u, u % 40 + 1, 1) for u in range(1, 41)), (2, 1, 1), (3, 99, 1)]
    named = between in "\t,"
    for name, rows, header in (("ratings.dat", rated, "userID artistID weight"), ("trust.txt", trust, "a b c")):
        lines = [header.replace(" ", between)] * named + [between.join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    result = run("fit", "ratings.dat", "trust.txt", *SMALL)
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "ratings-model")
    assert (model.ids_.tolist(), model.graph_.n_edges) == (list(range(1, 41)), 40)
    for line in (
        "trust.txt: the third column is the same everywhere and is not used",
        "trust.txt: 41 edges from 42 pairs, 1 in both directions",
        "1 id in the graph but not in the features (99); 1 edge left out",
    ):
        assert result.stderr.count(line) == 1
    result = run("fit", "ratings.dat", "trust.txt", "--directed", "mutual", "--overwrite", *SMALL)
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "ratings-model").graph_.n_edges == 1


@pytest.mark.parametrize(
    ("more", "start"),
    [
        (["nowhere.csv", "--out", "new"], "nowhere.csv: there is no such file"),
        (["people.csv", "nowhere.csv", "--out", "new"], "nowhere.csv: there is no such file"),
        (["--out", "new"], "there is nothing to train on"),
        (["people.csv", "--out", "new", "--tau", "2"], "tau must lie strictly between -1 and 1"),
        (["people.csv", "--out", "new", "--likelihood", "poisson"], ""),
        (["people.csv", "--out", "new", "--likelihood", "normal"], "likelihood must be one of"),
        (["people.csv", "--out", "new", "--family", "pairwise"], "family="),
        (["people.csv", "--out", "new", "--gamma-mi", "30"], "--gamma-mi is an option of --family pairwise"),
        (["people.csv", "people.csv", "--out", "new"], "people.csv: "),
        (["ratings.dat", "ratings.dat", "--out", "new"], "ratings.dat: its second column holds ids that are no rows"),
        (["--resume"], "there is nothing to train on"),
        (["people.csv", "--out", "new", "--id-column", "name"], "people.csv: there is no column named 'name'"),
        (["people.csv", "--out", "new", "--layout", "round"], "Invalid value for '--layout'"),
        (["people.csv", "--out", "new", "--config", "nowhere.toml"], "Invalid value for '--config': nowhere.toml"),
        (["people.csv", "--out", "new", "--config", "people.csv"], "Invalid value for '--config': people.csv: cannot"),
        (
            ["people.csv", "--out", "new", "--config", "odd.toml"],
            "Invalid value for '--config': odd.toml: there is no op",
        ),
        (["--out", "new", "--resume"], "new: there is no run to resume"),
        (
            ["people.csv", "--out", "new", "--resume", "--overwrite"],
            "--resume continues a run, --overwrite replaces it",
        ),
        (["people.csv", "--out", "people.csv"], "people.csv: there is a file of this name"),
        (["people.csv", "--out", "full"], "full: it holds 'note.txt' and no model of corrvae"),
    ],
)
def test_bad_input_is_one_sentence(more, start, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.toml").write_text("colour = 3\n")
    (tmp_path / "ratings.dat").write_text("".join(f"{k}::{m}::3\n" for k in range(9) for m in (100 + k, 200)))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    assert failure("fit", *more, *SMALL[:4], "--quiet").removeprefix(f"{tmp_path}/").startswith(start)
    assert not (tmp_path / "new" / "config.json").exists()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["note.txt"]


def test_a_run_is_replaced_only_if_asked_to(files, tmp_path):
    run("fit", *files, *SMALL)
    before = contents(tmp_path / "run")
    assert "--overwrite" in failure("fit", *files, *SMALL)
    finished = run("fit", "--out", tmp_path / "run", "--resume")
    assert (finished.exit_code, finished.stdout) == (0, "")
    assert "has finished; there is nothing to resume" in finished.stderr
    assert contents(tmp_path / "run") == before
    assert run("fit", *files, *SMALL, "--random-state", 1, "--overwrite").exit_code == 0
    assert contents(tmp_path / "run")["model"] != before["model"]


def test_a_fit_that_cannot_begin_leaves_the_run_before_as_it_was(files, tmp_path, at_step):
    at_step(10, lambda: signal.raise_signal(signal.SIGINT))
    run("fit", *files, *SMALL)
    kept = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert "tau must lie" in failure("fit", *files, *SMALL, "--tau", 2, "--overwrite", "--quiet")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == kept


def test_a_kill_while_a_run_is_replaced_does_not_pass_for_the_old_one(files, tmp_path, at_step):
    run("fit", *files, *SMALL)

    def killed():
        raise SystemExit(137)

    at_step(10, killed)
    assert run("fit", *files, *SMALL, "--overwrite", "--random-state", 1).exit_code == 137
    at_step(-1, None)
    assert run("fit", "--out", tmp_path / "run", "--resume").exit_code == 0
    assert load(tmp_path / "run").random_state == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_a_model_and_resumes_to_the_same_bits(number, files, tmp_path, at_step):
    run("fit", *files[:2], "--out", tmp_path / "whole", *SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "_progress", lambda: lambda p: signal.raise_signal(number) if p.step == 10 else None)
        result = run("fit", *files, *SMALL)
    folder = tmp_path / "run"
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].endswith(f"resume with: corrvae fit --out {folder} --resume")
    assert load(folder).n_steps_ == 11
    assert "--overwrite" in failure("fit", *files, *SMALL)
    resumed = run("fit", "--out", folder, "--resume", "--quiet")
    assert (resumed.exit_code, resumed.stdout, resumed.stderr) == (0, "", "")
    assert contents(folder) == contents(tmp_path / "whole")
    assert evaluations(folder) == evaluations(tmp_path / "whole")
    assert not (folder / "checkpoint").exists()


def test_a_second_stop_ends_at_once(files, tmp_path, at_step):
    at_step(10, lambda: [signal.raise_signal(signal.SIGTERM) for _ in range(2)])
    sentence = failure("fit", *files, *SMALL, "--quiet", code=1)
    begin = f"begin again with: corrvae fit --out {tmp_path / 'run'} --resume"
    assert sentence == f"interrupted before the first checkpoint; {begin}"
    sentence = failure("fit", *files, *SMALL, "--quiet", "--checkpoint-steps", 5, code=1)
    assert sentence.startswith("interrupted; resume from the last checkpoint with: ")
    at_step(-1, None)
    run("fit", *files[:2], "--out", tmp_path / "whole", *SMALL)
    assert run("fit", "--out", tmp_path / "run", "--resume").exit_code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_a_resumed_run_may_be_longer_but_not_another(files, tmp_path, at_step):
    at_step(10, lambda: signal.raise_signal(signal.SIGINT))
    assert run("fit", *files, *SMALL).exit_code == 1
    other = failure("fit", "--out", tmp_path / "run", "--resume", "--tau", 0.5, "--quiet")
    assert "holds a checkpoint of another fit" in other
    assert run("fit", "--out", tmp_path / "run", "--resume", "--max-steps", 50).exit_code == 0
    assert load(tmp_path / "run").n_steps_ == 50


def test_training_that_breaks_has_a_code_of_its_own(files, at_step):
    def breaks():
        raise TrainingError(7, "the edge term")

    at_step(10, breaks)
    assert "the edge term is infinite or not a number" in failure("fit", *files, *SMALL, "--quiet", code=3)


def test_a_full_disk_leaves_the_run_before_as_it_was(files, tmp_path, monkeypatch):
    run("fit", *files, *SMALL)
    before = contents(tmp_path / "run")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    sentence = failure("fit", *files, *SMALL, "--quiet", "--overwrite", "--random-state", 1, code=3)
    assert "the disk is full" in sentence
    monkeypatch.undo()
    assert contents(tmp_path / "run") == before
    assert load(tmp_path / "run").n_steps_ == 40


def test_a_read_only_folder_is_one_sentence(files, tmp_path, monkeypatch):
    def refuse(self, *arguments, **options):
        raise PermissionError(30, "Read-only file system", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert "read-only" in failure("fit", *files, *SMALL, "--quiet")


def test_a_program_that_is_stopped_resumes_to_the_same_bits(files, tmp_path):
    longer = [*map(str, SMALL), "--max-steps", "100000"]
    command = [sys.executable, "-m", "corrvae", "fit", *map(str, files), *longer]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / "run" / "history.csv").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 1, stderr
    assert stdout.startswith(f"The model is in {tmp_path / 'run'}: 60 points")
    assert stderr.splitlines()[-1].endswith("--resume")
    n_steps = load(tmp_path / "run").n_steps_ + 20
    assert run("fit", "--out", tmp_path / "run", "--resume", "--max-steps", n_steps).exit_code == 0
    run("fit", *files[:2], "--out", tmp_path / "whole", *SMALL, "--max-steps", n_steps)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_commands_are_listed_in_order():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert names[:3] == ["fit", "embed", "neighbors"]
