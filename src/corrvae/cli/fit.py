"""The command that trains a model on the user's files.

A run folder is a model folder (`CorrelatedVAE.save`) with three companions: `run.toml`, the options of the run, which
`--resume` and `--config` read; `history.csv`, every evaluation; and `checkpoint/` until training has finished.
"""

import json
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, final

import typer

from corrvae.cli.app import INTERRUPTED, command, is_main, is_quiet, keyword, notify
from corrvae.cli.output import (
    ConductanceOption,
    DirectedOption,
    IdColumnOption,
    JsonOption,
    LayoutOption,
    graph_options,
    number_or_word,
    print_document,
)
from corrvae.errors import FolderError

_OPTIONS = "run.toml"
_SECONDS_BETWEEN_LINES = 10.0
# Options that belong to a family, by its names for them.
_OF_FAMILIES = {
    "pairwise": {name: name for name in ("network", "non_edges", "gamma_kl", "gamma_mi", "pair_batch")}
    | {f"pair_{name}": name for name in ("inputs", "hidden", "dropout", "normalize")},
    "joint": {name: name for name in ("n_forests", "block_size", "strength")},
}


def _widths(value: Any) -> tuple[int, ...] | str:
    if value == "auto":
        return value
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    try:
        return tuple(int(part) for part in parts if str(part).strip())
    except ValueError as error:
        raise typer.BadParameter(f"{value!r} is no list of widths such as 600,200") from error


_PARSERS = {"NUMBER": number_or_word, "WIDTHS": _widths}


def _panel(panel: str, **options: tuple[Any, Any, str]) -> list[Parameter]:
    """Return the options of a panel of the help, each given as its type or the name of a parser, default and help."""
    found = []
    for name, (kind, default, text) in options.items():
        parser = _PARSERS.get(kind) if isinstance(kind, str) else None
        shown = typer.Option(help=text, rich_help_panel=panel, metavar=kind if parser else None, parser=parser)
        found.append(keyword(name, Annotated[Any if parser else kind, shown], default))
    return found


# typer's Context is not the class of the contexts it passes: an annotation would not hold.
def _read_config(context, parameter, path: Path | None) -> Path | None:
    """Make the options of a TOML file the defaults of this command: click's ``default_map``."""
    if path is not None:
        context.default_map = _read_options(path)
    return path


def _read_options(path: Path) -> dict[str, Any]:
    known = signature(fit).parameters.keys() - {"config"}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise typer.BadParameter(f"{path}: cannot be read as TOML ({error})") from error
    options = {name.replace("-", "_"): value for name, value in found.items()}
    for name in options.keys() - known:
        raise typer.BadParameter(f"{path}: there is no option named {name!r}")
    return options


_FIT_OPTIONS = [
    keyword("id_column", IdColumnOption, None),
    keyword("layout", LayoutOption, "auto"),
    keyword("conductance", ConductanceOption, "auto"),
    keyword("directed", DirectedOption, None),
    *_panel(
        "Files",
        groups=(Path | None, None, "Who belongs to which group, two columns: id, group; for --family joint."),
    ),
    *_panel(
        "Model",
        n_components=("NUMBER", "auto", "Dimension of the embedding; auto: from the rows."),
        family=(
            str,
            "independent",
            "independent; joint: posteriors depend on the graph too, and vertices without features have one; pairwise: "
            "also learn how correlated any two points are, slower.",
        ),
        likelihood=(str, "auto", "auto, multinomial, bernoulli, gaussian, poisson or negative_binomial."),
        tau=("NUMBER", "auto", "Correlation along an edge; or auto (0.9), learned, learned_per_dimension."),
        forests=(Literal["uniform", "adaptive"], "uniform", "adaptive: edges that data do not support lose weight."),
        eta=("NUMBER", "auto", "How far adaptive weights follow the data; auto: 3 over the edge terms' spread."),
        hidden=("WIDTHS", "auto", "Widths of the hidden layers, such as 600,200; auto: 300, less for wide tables."),
        init=(str, "random", "Start: random, or linear: the linear model in closed form."),
        contrast=(float, 0.0, "Weight of a term in which other points compete for being linked."),
        rivals=(
            str,
            "all",
            "Which points compete: all, disjoint (no feature in common), nearest (the hardest).",
        ),
        normalize=(str, "auto", "Of features before the networks read them: auto, none, binary, l2, log1p."),
        counts=(Literal["auto", "raw", "presence", "log"], "auto", "What counts become; auto: log if large."),
        dropout=("NUMBER", "auto", "Share of the features hidden at random while training; auto: 0.25 or 0."),
        masking=(float, 0.0, "Hide up to this share of a row, and explain what is hidden alone."),
        beta=(float, 1.0, "Weight of all terms but the reconstruction."),
        min_stddev=(float, 1e-4, "Least standard deviation of a posterior."),
        missing=(Literal["error", "mask"], "error", "Empty cells: error, or mask (leave them out of training)."),
    ),
    *_panel(
        "Family pairwise",
        network=(str, "perceptron", "perceptron; bilinear: far quicker for many pairs; metric: where edges are few."),
        pair_inputs=(str, "features", "What correlations are read from: features, or the neighbourhoods in the graph."),
        non_edges=(str | None, None, "Against unlinked pairs: information, or competing (for graph inputs)."),
        gamma_kl=(float, 1.0, "Strength of the singletons' KL in the regulariser."),
        gamma_mi=(float, 1.0, "Strength of the pairs' mutual information."),
        pair_hidden=("WIDTHS", None, "Widths of the pair network's hidden layers."),
        pair_dropout=(float | None, None, "As --dropout; otherwise as the encoder."),
        pair_normalize=(str | None, None, "As --normalize; otherwise as the encoder."),
        pair_batch=(int | None, None, "Pairs of a step; otherwise all pairs of its rows."),
    ),
    *_panel(
        "Family joint",
        n_forests=(int, 20, "Forests that posteriors are averaged over."),
        block_size=(int, 1, "Most vertices that training keeps correlated; more is slower and seldom better."),
        strength=(float | None, None, "Factor of a row's evidence where it is propagated; otherwise 0.3 or 1."),
    ),
    *_panel(
        "Training",
        max_epochs=("NUMBER", "auto", "Passes over the rows; auto: until rows held out are explained no better."),
        max_steps=(int | None, None, "Steps, in place of --max-epochs."),
        batch_size=("NUMBER", "auto", "Rows of a step."),
        edge_batch_size=("NUMBER", "auto", "Edges of a step."),
        learning_rate=("NUMBER", "auto", "Step size of Adam."),
        average_steps=(int, 0, "Steps over which the weights kept are averaged; 0: none."),
        warmup_steps=("NUMBER", "auto", "Steps over which all terms but the reconstruction grow to full size."),
        validation_fraction=("NUMBER", "auto", "Share of rows to hold out; the weights best for these are kept."),
        patience=("NUMBER", "auto", "Evaluations without improvement after which training stops early."),
        device=(str, "auto", "auto, cpu, cuda, cuda:1, mps."),
        random_state=(int | None, None, "Seed: the same gives the same model on a CPU. Otherwise one is drawn."),
    ),
    *_panel(
        "Run",
        checkpoint_steps=(int | None, None, "Steps between checkpoints."),
        checkpoint_minutes=(float | None, None, "Minutes between checkpoints; 10 if neither is given."),
    ),
]
_FEATURES = (
    "Table of features: CSV, TSV or Parquet, wide (an id and numbers in each row) or long (id, item, value: ratings); "
    "NPZ, NPY, .h5ad; or a folder of corrvae data convert."
)
_EDGES = (
    "Edges: two columns of ids, as CSV, TSV or Parquet. Without a graph, a plain variational auto-encoder is trained."
)
_FOLDER = "Folder for the run; otherwise named after the features: ratings.csv -> ratings-model."
_TOML = "TOML file of options by their names; those given here win. A run writes its own to run.toml."


@command(options=_FIT_OPTIONS)
def fit(
    features: Annotated[Path | None, typer.Argument(metavar="FEATURES", help=_FEATURES, show_default=False)] = None,
    graph: Annotated[Path | None, typer.Argument(metavar="GRAPH", help=_EDGES, show_default=False)] = None,
    *,
    out: Annotated[Path | None, typer.Option(help=_FOLDER)] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="TOML", help=_TOML, is_eager=True, callback=_read_config)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder, with its options.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Train a model on features and a graph, and write it to a folder.

    Ctrl-C or SIGTERM stops training after the step: the model so far can be used, and --resume continues to the same
    result as if it had not been stopped. A second one stops at once. Under torchrun its processes train one model.

    Rows without edges are points as others; vertices without features are left out with a line that counts them, but
    kept with --family joint.

    Example: corrvae fit people.csv friends.csv

    Example: corrvae fit ratings.csv friends.csv --out run --family pairwise --max-steps 20000

    Example: corrvae fit --out run --resume

    Example: torchrun --nproc-per-node 4 -m corrvae fit people.csv friends.csv --out run
    """
    options |= {"features": features, "graph": graph}
    if out is None and features is not None:
        out = Path(f"{features.name.split('.')[0] or 'corrvae'}-model")
    if out is None or (features is None and not resume):
        raise ValueError(
            "there is nothing to train on: name a table of features, as in corrvae fit FEATURES; to resume a run, name "
            "its folder, as in corrvae fit --out RUN --resume"
        )
    if resume and overwrite:
        raise ValueError("--resume continues a run, --overwrite replaces it: choose one of the two")
    if resume:
        options = _resumed_options(out, options)
        if (out / "config.json").exists() and not (out / "checkpoint").exists():
            notify(f"the run in {out} has finished; there is nothing to resume")
            return
    elif not overwrite:
        _check_free(out)
    try:
        model = _train(out, options, resume=resume)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(_interrupted(out)) from error
    if as_json:
        from corrvae.plots.facts import describe

        print_document({"out": str(out), **describe(model)})
    elif is_main() and not is_quiet():
        shape = f"{len(model.ids_):,} points in {model.embedding_.shape[1]:,} dimensions"
        typer.echo(f"The model is in {out}: {shape} ({model.likelihood_} likelihood, {model.n_steps_:,} steps)")
    if model.stopped_ == "interrupted":
        if is_main():
            typer.echo(f"interrupted; the model so far is saved, resume with: {resume_command(out)}", err=True)
        raise typer.Exit(INTERRUPTED)


def _interrupted(out: Path) -> str:
    if (out / "checkpoint" / "config.json").exists():
        return f"interrupted; resume from the last checkpoint with: {resume_command(out)}"
    if (out / _OPTIONS).exists():
        return f"interrupted before the first checkpoint; begin again with: {resume_command(out)}"
    return "interrupted before training began; nothing was written"


def resume_command(out: Path) -> str:
    """Return the command that resumes a run."""
    return f"corrvae fit --out {shlex.quote(str(out))} --resume"


def _train(out: Path, options: dict[str, Any], *, resume: bool) -> Any:
    import numpy as np

    from corrvae.io import lock_folder
    from corrvae.training import Checkpoint, CSVLog
    from corrvae.training.distributed import agree

    X, graph = _read_inputs(options)
    if options["random_state"] is None:
        options = {**options, "random_state": agree(int(np.random.default_rng().integers(2**31)))}
        notify(f"random_state {options['random_state']}")
    model = _make_model(options)
    steps, minutes = options["checkpoint_steps"], options["checkpoint_minutes"]
    checkpoint = Checkpoint(out / "checkpoint", steps=steps, minutes=minutes)
    callbacks = [CSVLog(out / "history.csv"), _progress(), checkpoint]
    with lock_folder(out) if is_main() else nullcontext():
        model.fit(X, graph=graph, callbacks=callbacks if resume else [_NewRun(out, options), *callbacks])
        if is_main():
            model.save(out)
            if model.stopped_ != "interrupted":
                shutil.rmtree(checkpoint.folder, ignore_errors=True)
    return model


@final
class _NewRun:
    """A callback that replaces the options and the checkpoint of the run before, once all checks are passed.

    The folder of the checkpoint is there, with or without a checkpoint, until training has finished.
    """

    def __init__(self, out: Path, options: Mapping[str, Any]) -> None:
        self._out, self._options = out, options

    def start(self, run: Any) -> None:
        """Begin the run, before the first step."""
        if run.workers.is_main:
            shutil.rmtree(self._out / "checkpoint", ignore_errors=True)
            (self._out / "checkpoint").mkdir(parents=True)
            _write_options(self._out, self._options)

    def __call__(self, progress: Any) -> None:
        """Do nothing after a step."""


def _read_inputs(options: Mapping[str, Any]) -> tuple[Any, Any]:
    import numpy as np

    from corrvae import CorrelationGraph
    from corrvae.io import join, read_features, read_graph, read_groups
    from corrvae.model.families import make_family

    path = Path(options["features"])
    how: Any = {name: options[name] for name in ("id_column", "layout", "missing")}
    features = read_features(path, **how)
    notify(f"{path}: {features.n_rows:,} rows of {features.n_columns:,} features")
    if options["graph"] is None and options["groups"] is None:
        return features, None
    rows = np.arange(features.n_rows) if features.ids is None else features.ids
    graph: Any = None
    if options["graph"] is not None:
        path = Path(options["graph"])
        graph = read_graph(path, rows=rows, **graph_options(options["conductance"], options["directed"]))
        notify(f"{path}: {graph.n_edges:,} edges between {graph.n_vertices:,} points")
    keep_bare = make_family(options["family"]).conditions_on_graph
    if options["groups"] is not None:
        if not keep_bare:
            raise ValueError("groups are vertices without features, which only --family joint keeps; add that")
        path = Path(options["groups"])
        groups = read_groups(path, rows=rows)
        notify(f"{path}: {len(groups):,} groups of {sum(map(len, groups.values())):,} members")
        graph = CorrelationGraph.from_groups(groups, edges=graph)
    return features, join(features, graph, keep_bare=keep_bare)


def _make_model(options: Mapping[str, Any]) -> Any:
    from corrvae import AdaptiveForests, CorrelatedVAE
    from corrvae.model.families import FAMILIES, make_family

    parameters = {name: options[name] for name in signature(CorrelatedVAE).parameters if name in options}
    chosen = parameters["family"]
    for family, names in _OF_FAMILIES.items():
        given = [name for name in names if options[name] != signature(fit).parameters[name].default]
        if chosen == family:
            parameters["family"] = FAMILIES[family](**{own: options[name] for name, own in names.items()})
        elif given:
            option = given[0].replace("_", "-")
            raise ValueError(f"--{option} is an option of --family {family}; add that, or leave it out")
    if options["contrast"]:
        competing = {name: options[name] for name in ("contrast", "rivals")}
        parameters["family"] = make_family(parameters["family"]).set_params(**competing)
    elif options["rivals"] != "all":
        raise ValueError("--rivals is an option of --contrast; add that, or leave it out")
    if options["forests"] == "adaptive":
        parameters["forests"] = AdaptiveForests(eta=options["eta"])
    elif options["eta"] != "auto":
        raise ValueError("--eta is an option of --forests adaptive; add that, or leave it out")
    return CorrelatedVAE(**parameters)


def _progress() -> Callable[[Any], None]:
    """Return a callback: a bar on a terminal, a line now and then elsewhere."""
    from corrvae.training import ProgressBar

    if is_quiet() or not is_main():
        return lambda progress: None
    if sys.stderr.isatty():
        return ProgressBar()
    shown = float("-inf")

    def show(progress: Any) -> None:
        nonlocal shown
        if progress.stopped is not None or progress.seconds - shown >= _SECONDS_BETWEEN_LINES:
            shown = progress.seconds
            where = f"step {progress.step:,} of {progress.max_steps:,} (epoch {progress.epoch:.1f})"
            notify(f"{where}: objective {progress.total:.2f}")

    return show


# The options of a run


def _write_options(out: Path, options: Mapping[str, Any]) -> None:
    """Write options as TOML; what JSON has for strings, numbers and lists is TOML too."""
    from corrvae.io import replace_file

    plain = {name: str(value.resolve()) if isinstance(value, Path) else value for name, value in options.items()}
    with replace_file(out / _OPTIONS) as stream:
        for name, value in plain.items():
            if value is not None:
                stream.write(f"{name} = {json.dumps(value, ensure_ascii=False)}\n".encode())


def _resumed_options(out: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a run was begun with, but for those that are given now.

    If these make it another fit, its checkpoint is not resumed; its length may change.
    """
    if not (out / _OPTIONS).exists():
        raise FolderError(out, "there is no run to resume; leave out --resume to begin one")
    begun = _read_options(out / _OPTIONS)
    defaults = {name: parameter.default for name, parameter in signature(fit).parameters.items()}
    resumed = {name: value if value != defaults[name] else begun.get(name) for name, value in options.items()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in resumed.items()}


def _check_free(out: Path) -> None:
    """Raise if a folder holds a run, which only --overwrite replaces."""
    if (out / "checkpoint" / "config.json").exists():
        raise FolderError(out, f"it holds an interrupted run; resume it with {resume_command(out)}, or --overwrite it")
    if (out / "config.json").exists():
        raise FolderError(out, "it holds a run already; choose another folder, or --overwrite it")
