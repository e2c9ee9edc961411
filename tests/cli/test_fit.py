import json
import signal
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from corrvae import load
from corrvae.errors import TrainingError
from corrvae.training.run import Run
from nursery import Call
from support.fits import SMALL, contents, fit, signals_at, write_points


@pytest.fixture
def files(tmp_path):
    features, graph = write_points(tmp_path)
    return ("--features", features, "--graph", graph, "--out", tmp_path / "run", *SMALL)


def sentence(result, code):
    """Give the one line on stderr that a command ended with."""
    assert (result.exit_code, result.stdout) == (code, "")
    (line,) = result.stderr.splitlines()
    return line


def test_two_files_become_a_model(files, tmp_path):
    result = fit(*files)
    assert result.exit_code == 0, result.output
    run = tmp_path / "run"
    assert result.stdout == f"The model is in {run}: 60 points in 2 dimensions (gaussian likelihood, 40 steps)\n"
    said = result.stderr.splitlines()
    assert said[0] == f"{tmp_path / 'features.csv'}: 60 rows of 4 features"
    assert "likelihood gaussian, because some features are negative (--likelihood chooses another)" in said
    assert said[-1].startswith("step 40 of 40 (epoch 10.7): objective -")
    model = load(run)
    assert (model.ids_[-1], model.graph_.n_edges, model.n_steps_) == ("p59", 57, 40)
    steps = [line.split(",")[0] for line in (run / "history.csv").read_text().split()]
    assert steps == ["step", *(str(step) for step in model.history_["step"])]


def test_everything_is_the_same_for_a_seed(files, tmp_path):
    first = fit(*files, "--json")
    before = contents(tmp_path / "run")
    again = fit(*files, "--json", "--overwrite")
    assert contents(tmp_path / "run") == before
    assert again.stdout == first.stdout
    other = fit(*files, "--overwrite", "--seed", "1", "--quiet")
    assert (other.stdout, other.stderr) == ("", "")
    assert contents(tmp_path / "run")["vertices.parquet"] != before["vertices.parquet"]


def test_a_program_reads_the_summary(files, tmp_path):
    result = fit(*files, "--json", "--quiet", "--validation", "0.2", "--patience", "50")
    assert result.stderr == ""
    summary = json.loads(result.stdout)
    assert summary.pop("objective") < 0
    assert summary.pop("validation_objective") < 0
    assert summary.pop("best_step") > 0
    assert summary == {
        "out": str(tmp_path / "run"),
        "stopped": "finished",
        "steps": 40,
        "rows": 60,
        "columns": 4,
        "edges": 57,
        "only_in_features": 2,
        "only_in_graph": 1,
        "posterior": "independent",
        "components": 2,
        "likelihood": "gaussian",
        "normalize": "raw",
        "seed": 0,
    }


def test_ratings_get_the_likelihood_of_draws(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"u{u},m{m},{rng.integers(1, 6)}" for u in range(40) for m in rng.choice(50, 5, replace=False)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,movie,rating", *rows]))
    result = fit("--features", tmp_path / "ratings.csv", "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    assert "likelihood multinomial, because all features are whole numbers from 0 up, and 90 % of them" in result.stderr
    model = load(tmp_path / "run")
    assert (model.likelihood, model.normalize, model.n_features_in_) == ("multinomial", "l2", 50)
    assert set(model.feature_names_in_) == {f"m{m}" for m in range(50)}


def test_options_reach_the_model(files, tmp_path):
    more = "--posterior pairwise --tau learned --gamma 0,30 --dropout 0,0.5 --normalize raw,l2 --pair-network bilinear"
    config = tmp_path / "config.toml"
    config.write_text("pair-hidden = 5\nwarmup_steps = 3\ncomponents = 9\n")
    result = fit(*files, *more.split(), "--learning-rate", "0.01", "--config", config, "--device", "cpu", "--quiet")
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "run")
    assert (model.tau, model.gamma, model.dropout, model.normalize) == ("learned", (0, 30), (0, 0.5), ("raw", "l2"))
    assert (model.pair_hidden, model.warmup_steps, model.n_components) == ((5,), 3, 2)
    assert (model.pair_network, model.learning_rate, model.device) == ("bilinear", 0.01, "cpu")


@pytest.mark.parametrize(
    ("more", "start"),
    [
        (["--features", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["--graph", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["--tau", "2"], "--tau must be a number between -1 and 1"),
        (["--steps", "5", "--epochs", "5"], "training lasts a number of steps or a number of epochs"),
        (
            ["--missing", "error"],
            "edges.csv: there are 1 id only in the graph (ghost) and 2 ids only in the features (",
        ),
        (["--likelihood", "poisson"], "features.csv: Negative values in data: row 0"),
        (["--config", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["--id-column", "name"], "features.csv: there is no column named 'name'"),
        (["--resume"], "run: there is no run to resume"),
        (["--out", "features.csv"], "features.csv: there is a file of this name"),
        (["--out", "features.csv/x"], "features.csv/x: cannot be written (Not a directory)"),
        (["--out", "."], ".: is not the folder of a run (it holds edges.csv, features.csv); nothing was written"),
        (["--posterior", "pairwise", "--vertex-batch", "1"], "--posterior pairwise looks at pairs of a step's rows"),
    ],
)
def test_bad_input_is_one_sentence(more, start, tmp_path, monkeypatch):
    write_points(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = fit("--features", "features.csv", "--graph", "edges.csv", "--out", "run", *SMALL, "--quiet", *more)
    said = sentence(result, 2).replace(f"{tmp_path}/", "")
    assert said.startswith(start)
    assert not (tmp_path / "run").exists()


def test_a_stop_leaves_a_model_and_says_how_to_go_on(files, tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with signals_at(11, signal.SIGINT):
            result = fit(*files, "--json")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["stopped"] == "interrupted"
    assert (
        result.stderr.splitlines()[-1]
        == f"stopped before the end; corrvae fit --out {tmp_path / 'run'} --resume goes on"
    )
    assert load(tmp_path / "run").n_steps_ == 11


def test_a_second_signal_ends_at_once(files, tmp_path):
    with signals_at(11, signal.SIGTERM, signal.SIGTERM):
        result = fit(*files, "--quiet")
    again = f"corrvae fit --out {tmp_path / 'run'} --resume"
    assert sentence(result, 1) == f"stopped at once, before the first checkpoint; {again} begins again"
    with signals_at(11, signal.SIGTERM, signal.SIGTERM):
        result = fit(*files, "--quiet", "--checkpoint-every", "5")  # what was left is no loss
    assert sentence(result, 1) == f"stopped at once; {again} goes on from the last checkpoint"


def test_a_signal_while_libraries_are_imported_ends_in_a_sentence(files, monkeypatch):
    class Slow(ModuleType):
        def __getattr__(self, name):
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda *_: None)  # or the tests would end, if it were not heard
    try:
        monkeypatch.setitem(sys.modules, "corrvae.cli.running", Slow("running"))
        assert sentence(fit(*files), 1) == "stopped before training began; nothing was written"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_training_that_breaks_is_told_apart(files, monkeypatch):
    def breaks(self):
        raise TrainingError(7, "the edge term", (), None)

    monkeypatch.setattr(Run, "advance", breaks)
    assert sentence(fit(*files, "--quiet"), 3).startswith("after 7 steps the edge term is infinite or not a number")


def test_training_that_diverges_ends_in_one_sentence(files):
    result = fit(*files, "--quiet", "--learning-rate", "1e30")
    assert "is infinite or not a number" in sentence(result, 3)


def test_a_fit_after_one_that_broke_needs_no_leave(files, tmp_path):
    assert fit(*files, "--quiet", "--learning-rate", "1e30").exit_code == 3
    assert (tmp_path / "run" / "run.toml").exists()
    assert fit(*files, "--quiet").exit_code == 0
    assert load(tmp_path / "run").n_steps_ == 40


def test_where_to_is_settled_before_data_are_read(tmp_path):
    (tmp_path / "file").write_text("")
    result = fit("--features", tmp_path / "nowhere.csv", "--out", tmp_path / "file" / "x")
    assert sentence(result, 2) == f"{tmp_path / 'file' / 'x'}: cannot be written (Not a directory)"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_answer_that_cannot_be_written_is_one_sentence(more, files, tmp_path, nursery):
    fit(*files, "--quiet")
    arguments = {"arguments": ["fit", "--out", str(tmp_path / "run"), "--resume", *more]}
    (ending,) = nursery.run(Call("fragile:program", arguments, stdout="/dev/full"))
    assert ending.code == 3
    assert ending.errors.splitlines()[1:] == ["standard output: no space left on device"]
