"""A run of `corrvae fit`, from settings to a folder, or from a folder on."""

import csv
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import typer

from corrvae.cli.exits import INTERRUPTED
from corrvae.cli.holding import hold
from corrvae.cli.inputs import Inputs, Say, check_unchanged, read_inputs, settle_likelihood
from corrvae.cli.progress import choose_progress
from corrvae.cli.restarts import launch_name
from corrvae.cli.run_folder import LAUNCH, RunFolder
from corrvae.cli.settings import check_options, estimator_parameters, kept_form, read_config, resolve
from corrvae.cli.signals import LateRequest, OneRequest, heed_termination
from corrvae.cli.together import speaks
from corrvae.drafts import draft_of_file, naming
from corrvae.graphs.ids import VertexIds
from corrvae.ranks import Ranks, is_launched, join_ranks
from corrvae.threads import computing_with
from corrvae.training.callbacks import Callback, CSVLog
from corrvae.training.history import History, Progress

if TYPE_CHECKING:
    from corrvae import CorrelatedVAE

_UNTIMED = ("seconds",)  # what differs between two runs that are otherwise the same


@final
@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes
    ----------
    out
        The run's folder.
    options
        Settings by name; ``None`` where the option was not given.
    config
        A TOML file of further settings.
    resume, overwrite, quiet
        Whether to go on with the run in the folder, to replace it, to say nothing.
    """

    out: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    config: Path | None = None
    resume: bool = False
    overwrite: bool = False
    quiet: bool = False


@final
@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    stopped
        "finished", "early" or "interrupted".
    summary
        Facts about the run and its model, as JSON has them.
    """

    stopped: str
    summary: dict[str, Any]


def run_fit(request: Request) -> Outcome:
    """Train a model as the command line asks, and leave it in its folder.

    Processes that PyTorch's launcher started together train it together. The first of them speaks and writes. If the
    launcher starts them again, they go on with the run that its first start began.

    Parameters
    ----------
    request
        What is asked for.
    """
    folder = RunFolder(request.out)
    options = check_options(request.options)
    config = {} if request.config is None else read_config(request.config)
    with heed_termination(), _together() as ranks, ExitStack() as until_the_end:
        say: Say = _to_stderr if ranks.is_first and not request.quiet else _silence
        with _warnings_said(say):
            with ranks.agreed():
                if request.resume and request.overwrite:
                    raise ValueError("--resume goes on with a run, --overwrite replaces it: give one of the two")
                if ranks.is_first:
                    until_the_end.enter_context(hold(folder.path))
                again = ranks.is_first and folder.was_begun_by(launch_name())
            # launchers count their restarts, but not those that another machine's had them make
            if again := ranks.tell(again):
                say("the processes were started again; the run goes on from its last checkpoint, if there is one")
            if request.resume or again:
                return _resume(request, folder, {**config, **options}, ranks, say)
            return _begin(request, folder, resolve(options, config), ranks, say)


@contextmanager
def _together() -> Iterator[Ranks]:
    """Join the other processes, if the launcher started some: without them, torch is not imported for it."""
    if not is_launched():
        yield Ranks()
        return
    with join_ranks() as ranks:
        yield ranks


def _begin(request: Request, folder: RunFolder, settings: dict[str, Any], ranks: Ranks, say: Say) -> Outcome:
    with ranks.agreed():
        if ranks.is_first:
            folder.refuse_to_begin(overwrite=request.overwrite)
            if folder.is_begun and not request.overwrite:
                say(f"the run in {request.out} left neither a checkpoint nor a model; a new one takes its place")
        inputs = read_inputs(settings, say)
        settings = settle_likelihood(settings, inputs.features, say)
        make_model(settings)  # refuses what cannot be before a run that is there goes
    with _ended_at_once(folder):
        with ranks.agreed():
            if ranks.is_first:
                launch = {} if launch_name() is None else {LAUNCH: launch_name()}
                folder.begin(settings, {**inputs.found, **launch})
        try:
            return _train(request, folder, settings, inputs, ranks)
        except (ValueError, TypeError):
            if ranks.is_first:
                folder.abandon()
            raise


def resume_command(out: Path) -> str:
    """Give the command that goes on with a run.

    Examples
    --------
    >>> resume_command(Path("my run"))
    "corrvae fit --out 'my run' --resume"
    """
    return f"corrvae fit --out {shlex.quote(str(out))} --resume"


def make_model(settings: Mapping[str, Any]) -> "CorrelatedVAE":
    """Make the estimator of settings, and refuse what the estimator would refuse.

    Examples
    --------
    >>> make_model({"components": 3, "seed": 1})
    CorrelatedVAE(n_components=3, random_state=1)
    """
    from corrvae import CorrelatedVAE
    from corrvae.parameters import check_parameters
    from corrvae.training.settings import choose_device

    model = CorrelatedVAE(**estimator_parameters(settings))
    check_parameters(model)
    choose_device(model.device)
    return model


def _resume(request: Request, folder: RunFolder, given: Mapping[str, Any], ranks: Ranks, say: Say) -> Outcome:
    with ranks.agreed():  # before any process reads there
        if ranks.is_first:
            folder.settle()
    with ranks.agreed():
        settings = folder.settings()
        given = {name: kept_form(name, value) for name, value in given.items()}
        folder.check_unchanged(settings, given)
        stopped = folder.stopped()
    stopped = ranks.tell(stopped)  # a disk that machines share may show each another state
    if stopped in ("finished", "early"):
        from corrvae import load

        if ranks.is_first:
            folder.tidy()
        say(f"the run in {request.out} is finished; there is nothing to go on with")
        return _outcome(request, settings, folder.found(), load(request.out))
    for name in ("threads", "checkpoint_every"):
        settings[name] = given.get(name, settings[name])
    with ranks.agreed():
        inputs = read_inputs(settings, say)
        check_unchanged(settings, folder.found(), inputs.found)
    with _ended_at_once(folder):
        return _train(request, folder, settings, inputs, ranks)


def _train(request: Request, folder: RunFolder, settings: Mapping[str, Any], inputs: Inputs, ranks: Ranks) -> Outcome:
    log, late = CSVLog(folder.history), LateRequest()
    kept = folder.keep() if ranks.is_first else None
    callbacks: list[Callback] = [_untimed(log), *choose_progress(sys.stderr, quiet=request.quiet)]
    callbacks.append(late if ranks.count == 1 else OneRequest())
    with computing_with(settings["threads"]), late.heeded():
        model = make_model(settings)
        model.fit(
            inputs.features.matrix,
            graph=inputs.graph,
            checkpoint=folder.checkpoint,
            checkpoint_steps=settings["checkpoint_every"],
            callbacks=callbacks,
        )
        if model.stopped_ == "interrupted":
            late.insist()
        name_rows_and_columns(model, inputs)
        model.history_ = History({k: v for k, v in model.history_.columns.items() if k not in _UNTIMED})
        with ranks.agreed():  # no process ends before all is written: the launcher would end the others
            if kept is not None:
                folder.restore(kept)
                _write_history(log.path, model.history_)
                folder.finish(model)
    if late.asked:
        _to_stderr(f"stopped as it ended: the run in {request.out} is finished")
        raise typer.Exit(INTERRUPTED)
    return _outcome(request, settings, inputs.found, model)


def name_rows_and_columns(model: "CorrelatedVAE", inputs: Inputs) -> None:
    """Give a model that was fitted to a matrix the ids and names that the matrix could not carry."""
    if inputs.features.names is not None:
        model.feature_names_in_ = np.array(inputs.features.names, dtype=object)
    if inputs.graph is None and inputs.features.ids is not None:
        model.ids_ = VertexIds.from_vertices(inputs.features.ids).values


def _outcome(
    request: Request, settings: Mapping[str, Any], found: Mapping[str, Any], model: "CorrelatedVAE"
) -> Outcome:
    columns = model.history_.columns
    last = {name: float(columns[name][-1]) for name in ("total", "validation_total") if columns.get(name)}
    summary = {
        "out": str(request.out),
        "stopped": model.stopped_,
        "steps": model.n_steps_,
        "best_step": model.best_step_,
        **{name: found.get(name) for name in ("rows", "columns", "edges", "only_in_features", "only_in_graph")},
        **{name: settings[name] for name in ("posterior", "components", "likelihood", "normalize", "seed")},
        "objective": last.get("total"),
        "validation_objective": last.get("validation_total"),
    }
    return Outcome(model.stopped_, summary)


def _untimed(log: CSVLog) -> Callback:
    """Log evaluations without their times, so that the same run leaves the same file."""

    def write(progress: Progress) -> None:
        row = progress.evaluation
        if row is not None:
            row = {name: value for name, value in row.items() if name not in _UNTIMED}
        with naming(log.path):
            log(replace(progress, evaluation=row))

    return write


def _write_history(place: Path, history: History) -> None:
    """Write every evaluation anew: what a run that is resumed finds in the file may have been cut off or changed."""
    columns = history.columns
    if columns:
        with draft_of_file(place) as draft, draft.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([columns, *zip(*columns.values(), strict=True)])


@contextmanager
def _ended_at_once(folder: RunFolder) -> Iterator[None]:
    """Say after a second signal, or one before the first step, how to go on; if nothing was written, others do."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not folder.is_begun:
            raise
        if speaks():
            again = resume_command(folder.path)
            if any(folder.checkpoint.glob("step-*")):
                _to_stderr(f"stopped at once; {again} goes on from the last checkpoint")
            else:
                _to_stderr(f"stopped at once, before the first checkpoint; {again} begins again")
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def _warnings_said(say: Say) -> Iterator[None]:
    """Say warnings as sentences; that training was interrupted is told at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "training was interrupted")
        warnings.showwarning = _said(say)
        yield


def _said(say: Say) -> Callable[..., None]:
    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, UserWarning):
            say(str(message))

    return show


def _to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _silence(sentence: str) -> None:
    """Say nothing."""
