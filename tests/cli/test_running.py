import os
import signal

import pytest
import torch
import typer

from corrvae import CorrelatedVAE, load
from corrvae.cli.run_folder import RunFolder
from corrvae.cli.running import Request, make_model, resume_command, run_fit
from corrvae.drafts import take_folder
from corrvae.errors import DataFileError, FolderError
from corrvae.training.checkpoints import CheckpointFolder
from support.fits import acting_at, contents, fit, signals_at, write_points

OPTIONS = {"components": 2, "hidden": "8", "steps": 40, "vertex_batch": 16, "threads": 1}


@pytest.fixture
def request_for(tmp_path):
    features, graph = write_points(tmp_path)
    options = {**OPTIONS, "features": str(features), "graph": str(graph)}
    return lambda name="run", **more: Request(tmp_path / name, {**options, **more.pop("options", {})}, **more)


def again(request, **more):
    return Request(request.out, **{"resume": True, "quiet": True, **more})


@pytest.fixture(autouse=True)
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("posterior", ["independent", "pairwise"])
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(number, posterior, request_for):
    options = {"posterior": posterior, "validation": 0.2, "evaluate_every": 7, "pair_hidden": [8]}
    whole, stopped = (request_for(name, options=options, quiet=True) for name in ("whole", "stopped"))
    assert run_fit(whole).stopped == "finished"
    with signals_at(17, number):
        outcome = run_fit(stopped)
    assert (outcome.stopped, outcome.summary["steps"]) == ("interrupted", 17)
    model = load(stopped.out)
    assert (model.n_steps_, model.ids_[:2].tolist()) == (17, ["p0", "p1"])
    assert run_fit(again(stopped)).stopped == "finished"
    assert contents(stopped.out) == contents(whole.out)


def test_a_run_that_was_killed_goes_on_from_its_checkpoint(request_for):
    request = request_for(options={"checkpoint_every": 10}, quiet=True)
    run_fit(whole := request_for("whole", options={"checkpoint_every": 10}, quiet=True))
    with signals_at(25, signal.SIGTERM, signal.SIGTERM), pytest.raises(Exception) as ended:  # noqa: PT011
        run_fit(request)
    assert ended.value.exit_code == 1
    kept = sorted(place.name for place in (request.out / "checkpoint").iterdir())
    assert kept == ["step-000000010", "step-000000020"]
    with pytest.raises(FolderError):
        load(request.out)
    assert run_fit(again(request)).stopped == "finished"
    assert contents(request.out) == contents(whole.out)


def test_a_run_whose_files_are_cleaned_away_meanwhile_loses_nothing(request_for, tmp_path):
    """Nor is it mixed with the one that it replaces."""
    how = {"options": {"steps": 12, "evaluate_every": 3}, "quiet": True}
    run_fit(whole := request_for("whole", **how))
    for _ in range(2):  # where there is no run, and where there is one
        request = request_for(**how, overwrite=True)
        work = request.out / "run.next" if request.out.exists() else request.out
        with acting_at(7, lambda work=work: [(work / name).unlink() for name in ("run.toml", "history.csv")]):
            assert run_fit(request).stopped == "finished"
        assert contents(request.out) == contents(whole.out)
    with pytest.raises(FolderError, match=r"model.new: the model is here, .* has no run.toml any more"):
        RunFolder(tmp_path / "new").finish(load(whole.out))
    assert load(tmp_path / "new" / "model.new").n_steps_ == 12


def test_a_run_that_goes_on_needs_no_history_file(request_for):
    how = {"options": {"steps": 12, "evaluate_every": 3}, "quiet": True}
    run_fit(whole := request_for("whole", **how))
    with signals_at(7, signal.SIGTERM):
        run_fit(request := request_for(**how))
    history = request.out / "history.csv"
    changed = history.read_text().replace("-", "", 1)
    assert changed != history.read_text()
    history.write_text(changed)
    assert run_fit(again(request)).stopped == "finished"
    assert contents(request.out) == contents(whole.out)


def test_a_finished_run_says_so(request_for, capsys):
    request = request_for()
    first = run_fit(request)
    before = contents(request.out)
    capsys.readouterr()
    assert run_fit(again(request, quiet=False)).summary == first.summary
    assert capsys.readouterr() == ("", f"the run in {request.out} is finished; there is nothing to go on with\n")
    assert contents(request.out) == before


def test_changed_settings_and_data_are_refused(request_for, tmp_path):
    request = request_for(quiet=True)
    with signals_at(5, signal.SIGTERM):
        run_fit(request)
    with pytest.raises(FolderError, match="this run has seed = 0, not 3, and cannot go on otherwise"):
        run_fit(again(request, options={"seed": 3}))
    config = tmp_path / "config.toml"
    config.write_text("tau = 0.5")
    with pytest.raises(FolderError, match=r"this run has tau = 0.99, not 0.5"):
        run_fit(again(request, config=config))
    with pytest.raises(ValueError, match="--resume goes on with a run, --overwrite replaces it: give one of the two"):
        run_fit(again(request, overwrite=True))
    features = tmp_path / "features.csv"
    features.write_text(features.read_text().replace("p7,", "q7,"))
    with pytest.raises(DataFileError, match=r"features\.csv: has changed since the run began"):
        run_fit(again(request))


def test_the_same_options_may_be_given_again(request_for):
    request = request_for(quiet=True)
    with signals_at(5, signal.SIGTERM):
        run_fit(request)
    assert run_fit(again(request, options=request.options)).stopped == "finished"


def test_the_file_of_a_run_repeats_it(request_for, tmp_path):
    request = request_for(quiet=True)
    run_fit(request)
    run_fit(Request(tmp_path / "repeated", config=request.out / "run.toml", quiet=True))
    assert contents(tmp_path / "repeated") == contents(request.out)


def test_a_run_stays_until_the_next_can_begin(request_for, tmp_path):
    run_fit(request_for(quiet=True))
    before = contents(tmp_path / "run")
    for options in ({"features": "nowhere.csv"}, {"device": "abacus"}, {"likelihood": "bernoulli"}):
        with pytest.raises(ValueError, match=r"no such file|abacus|Bernoulli"):
            run_fit(request_for(options=options, overwrite=True, quiet=True))
        assert contents(tmp_path / "run") == before
    run_fit(request_for(options={"seed": 1}, overwrite=True, quiet=True))
    assert load(tmp_path / "run").random_state == 1


def test_a_run_stays_until_the_next_has_a_model(request_for, tmp_path, monkeypatch):
    run_fit(request_for(quiet=True))
    before = contents(tmp_path / "run")
    other = {"options": {"seed": 1, "checkpoint_every": 10}, "quiet": True}
    run_fit(request_for("wanted", **other))

    def refuse(*_, **__):
        raise ValueError("no")

    with monkeypatch.context() as patch:
        patch.setattr(CorrelatedVAE, "fit", refuse)
        with pytest.raises(ValueError, match="no"):
            run_fit(request_for(overwrite=True, **other))
    assert contents(tmp_path / "run") == before
    with signals_at(25, signal.SIGTERM, signal.SIGTERM), pytest.raises(typer.Exit):
        run_fit(request_for(overwrite=True, **other))
    assert before.items() <= contents(tmp_path / "run").items()
    assert load(tmp_path / "run").random_state == 0
    kept = sorted(place.name for place in (tmp_path / "run" / "run.next" / "checkpoint").iterdir())
    assert kept == ["step-000000010", "step-000000020"]
    assert run_fit(again(request_for())).stopped == "finished"
    assert contents(tmp_path / "run") == contents(tmp_path / "wanted")


@pytest.mark.skipif(os.name == "nt", reason="there are no locks")
@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True, "options": {}}])
def test_two_runs_do_not_share_a_folder(how, request_for, tmp_path):
    request = request_for(quiet=True)
    with signals_at(5, signal.SIGTERM):
        run_fit(request)
    before = contents(request.out)
    lock = take_folder(request.out)  # as another program does
    assert lock is not None
    with pytest.raises(FolderError, match="run: another corrvae is training in this folder"):
        run_fit(request_for(quiet=True, **how))
    os.close(lock)
    assert contents(request.out) == before


def test_a_run_that_left_nothing_is_begun_anew(request_for, capsys):
    with signals_at(5, signal.SIGTERM, signal.SIGTERM), pytest.raises(typer.Exit):
        run_fit(request_for(quiet=True))
    capsys.readouterr()
    assert run_fit(request := request_for()).stopped == "finished"
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"the run in {request.out} left neither a checkpoint nor a model; a new one takes its place"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_first_step_leaves_nothing_in_the_way(number, request_for, monkeypatch, capsys):
    request = request_for(quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr(CorrelatedVAE, "fit", lambda *_, **__: signal.raise_signal(number))
        with pytest.raises(typer.Exit) as ended:
            run_fit(request)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == (
        f"stopped at once, before the first checkpoint; {resume_command(request.out)} begins again\n"
    )
    assert run_fit(request).stopped == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_as_the_model_is_written_is_obeyed_when_it_is_whole(number, request_for, monkeypatch, capsys):
    run_fit(whole := request_for("whole", quiet=True))
    request, save = request_for(quiet=True), CorrelatedVAE.save

    def disturbed(self, path):
        signal.raise_signal(number)
        save(self, path)

    monkeypatch.setattr(CorrelatedVAE, "save", disturbed)
    with pytest.raises(typer.Exit) as ended:
        run_fit(request)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == f"stopped as it ended: the run in {request.out} is finished\n"
    assert contents(request.out) == contents(whole.out)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("again", [False, True])
def test_a_first_signal_as_the_last_checkpoint_is_written_is_the_first(again, request_for, monkeypatch, capsys):
    request, write, save = request_for(quiet=True), CheckpointFolder.write, CorrelatedVAE.save

    def disturbed(self, step, *about):
        signal.raise_signal(signal.SIGTERM)
        return write(self, step, *about)

    def disturbed_again(self, path):
        if again:
            signal.raise_signal(signal.SIGTERM)
        save(self, path)

    monkeypatch.setattr(CheckpointFolder, "write", disturbed)
    monkeypatch.setattr(CorrelatedVAE, "save", disturbed_again)
    with pytest.raises(typer.Exit) as ended:
        run_fit(request)
    assert ended.value.exit_code == 1
    at_once = f"stopped at once; {resume_command(request.out)} goes on from the last checkpoint\n"
    finished = f"stopped as it ended: the run in {request.out} is finished\n"
    assert capsys.readouterr().err == (at_once if again else finished)
    assert (request.out / "config.json").exists() is not again
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("in_training", [False, True])
def test_a_second_signal_as_the_model_is_written_ends_at_once(in_training, request_for, monkeypatch, capsys):
    request, saved = request_for(options={"checkpoint_every": 10}, quiet=True), []

    def disturbed(self, path):
        signal.raise_signal(signal.SIGTERM)
        if not in_training:
            signal.raise_signal(signal.SIGINT)
        saved.append(path)

    monkeypatch.setattr(CorrelatedVAE, "save", disturbed)
    with signals_at(17 if in_training else -1, signal.SIGTERM), pytest.raises(typer.Exit) as ended:
        run_fit(request)
    assert (ended.value.exit_code, saved) == (1, [])
    said = f"stopped at once; {resume_command(request.out)} goes on from the last checkpoint\n"
    assert capsys.readouterr().err == said
    monkeypatch.undo()
    assert run_fit(again(request)).stopped == "finished"


def test_without_a_graph_ids_and_names_are_kept_too(request_for):
    request = request_for(options={"graph": None}, quiet=True)
    run_fit(request)
    model = load(request.out)
    assert model.graph_ is None
    assert model.ids_[:3].tolist() == ["p0", "p1", "p2"]
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_a_run_that_is_refused_by_training_leaves_no_folder(request_for, monkeypatch):
    def refuse(*_, **__):
        raise ValueError("no")

    monkeypatch.setattr(CorrelatedVAE, "fit", refuse)
    request = request_for(quiet=True)
    with pytest.raises(ValueError, match="no"):
        run_fit(request)
    assert not request.out.exists()


def test_threads_are_as_they_were_afterwards(request_for):
    before = torch.get_num_threads()
    run_fit(request_for(options={"threads": 2}, quiet=True))
    assert torch.get_num_threads() == before


def test_warnings_are_sentences(request_for, capsys):
    run_fit(request_for(options={"edge_batch": 1000}))
    said = capsys.readouterr().err.splitlines()
    assert "edge_batch=1000 is more than the 57 edges there are to train on, and is taken as 57" in said
    run_fit(request_for("other", options={"edge_batch": 1000}, quiet=True))
    assert capsys.readouterr() == ("", "")


def test_parameters_are_refused_in_words(tmp_path):
    with pytest.raises(ValueError, match="device='abacus' cannot be used on this machine"):
        make_model({"device": "abacus"})
    assert resume_command(tmp_path / "x y") == f"corrvae fit --out '{tmp_path}/x y' --resume"
    assert fit("--out", tmp_path / "x").exit_code == 2
