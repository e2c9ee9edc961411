"""The command that trains a model on the user's files."""

from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.application import app
from corrvae.cli.exits import INTERRUPTED, plainly
from corrvae.cli.outputs import to_stdout
from corrvae.cli.signals import heed_termination
from corrvae.cli.together import speaks

_DATA, _MODEL, _TRAINING, _RUN = "Files", "Model", "Training", "Run"


def _option(text: str, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(help=text, rich_help_panel=panel, metavar=metavar, show_default=False)


@app.command()
def fit(
    out: Annotated[Path, _option("Folder for the run.", _DATA)],
    features: Annotated[
        str | None,
        _option(
            "File of features: CSV, TSV or Parquet, either wide (an id and numbers in each row) or long (id, item, "
            "value: ratings); NPZ, NPY or .h5ad.",
            _DATA,
            "FILE",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        _option(
            "File of edges: two columns of ids, as CSV, TSV or Parquet. Without a graph, a plain variational "
            "auto-encoder is trained.",
            _DATA,
            "FILE",
        ),
    ] = None,
    id_column: Annotated[str | None, _option("Column of ids; else the first.", _DATA, "NAME")] = None,
    layout: Annotated[str | None, _option("auto (the default), wide or long.", _DATA)] = None,
    conductance: Annotated[
        str | None, _option("Column of the graph with the strengths of its edges; else all are alike.", _DATA, "NAME")
    ] = None,
    missing: Annotated[
        str | None,
        _option(
            "Ids that are in one file only. drop (the default): ids of the graph without features are left out with "
            "their edges, and rows that are not in the graph stay, as points without edges. error: both are refused.",
            _DATA,
        ),
    ] = None,
    empty_cells: Annotated[
        str | None, _option("error (the default), or mask: leave empty cells out of training.", _DATA)
    ] = None,
    posterior: Annotated[
        str | None,
        _option(
            "independent (the default), or pairwise: also learn how correlated any two points are; slower.", _MODEL
        ),
    ] = None,
    components: Annotated[int | None, _option("Dimension of the embedding (100).", _MODEL)] = None,
    likelihood: Annotated[
        str | None,
        _option(
            "auto (the default), multinomial, bernoulli, gaussian, poisson or negative_binomial. auto: gaussian if a "
            "number is negative; else multinomial if half or more are zeros, in 20 columns or more; else bernoulli "
            "for 0 and 1, negative_binomial for whole numbers with zeros, gaussian for others.",
            _MODEL,
        ),
    ] = None,
    tau: Annotated[
        str | None,
        _option("Correlation along an edge, between -1 and 1 (0.99); or learned, learned_per_dimension.", _MODEL),
    ] = None,
    gamma: Annotated[
        str | None, _option("Strength of the regulariser of pairwise posteriors (1), or two: 0,30.", _MODEL)
    ] = None,
    normalize: Annotated[
        str | None,
        _option(
            "What networks do to features before they read them: raw, binary, l2, log1p, or two: l2,raw. auto (the "
            "default): l2 for multinomial, log1p for counts, else raw.",
            _MODEL,
        ),
    ] = None,
    dropout: Annotated[str | None, _option("Share of features hidden while training (0), or two.", _MODEL)] = None,
    hidden: Annotated[str | None, _option("Widths of hidden layers (300), such as 600,200.", _MODEL)] = None,
    pair_network: Annotated[
        str | None,
        _option(
            "perceptron (the default); bilinear: far quicker for many pairs; metric: reads the encoder's means, goes "
            "further where edges are few.",
            _MODEL,
        ),
    ] = None,
    steps: Annotated[int | None, _option("Length of training in steps.", _TRAINING)] = None,
    epochs: Annotated[int | None, _option("Length of training in passes over the rows (40).", _TRAINING)] = None,
    vertex_batch: Annotated[int | None, _option("Rows of a step (64).", _TRAINING)] = None,
    edge_batch: Annotated[int | None, _option("Edges of a step (256).", _TRAINING)] = None,
    pair_batch: Annotated[
        int | None, _option("Pairs that a step of a pairwise model regularises; else all of its rows.", _TRAINING)
    ] = None,
    learning_rate: Annotated[float | None, _option("Step size of Adam (0.001).", _TRAINING)] = None,
    validation: Annotated[
        float | None, _option("Share of rows to hold out; the best parameters on these are kept (0).", _TRAINING)
    ] = None,
    patience: Annotated[
        int | None, _option("Evaluations without improvement after which training stops early.", _TRAINING)
    ] = None,
    seed: Annotated[
        int | None, _option("Seed (0). The same seed gives the same model on a CPU, byte for byte.", _TRAINING)
    ] = None,
    device: Annotated[str | None, _option("auto (the default), cpu, cuda, cuda:1, mps.", _TRAINING)] = None,
    threads: Annotated[int | None, _option("Threads to compute with; a small model takes one.", _TRAINING)] = None,
    checkpoint_every: Annotated[
        int | None, _option("Steps between checkpoints; else there is one every ten minutes.", _RUN, "STEPS")
    ] = None,
    config: Annotated[
        Path | None,
        _option(
            "TOML file of settings, named as the options are; options win. Also: graph_columns, directed, "
            "edge_sampling, min_stddev, pair_hidden, warmup_steps, evaluate_every. A run keeps its own in run.toml.",
            _RUN,
            "TOML",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a run that was stopped, under its own settings.", rich_help_panel=_RUN
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.", rich_help_panel=_RUN)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.", rich_help_panel=_RUN)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.", rich_help_panel=_RUN)] = False,
) -> None:
    """Train a model on features and a graph, and write it to a folder.

    Ctrl-C or SIGTERM stops training after the step: the model so far can be used, and --resume goes on to the same
    result as if it had not been stopped. A second one stops at once.

    Under torchrun all of its processes train one model; a step is shared among them.

    Example: corrvae fit --features features.csv --graph edges.csv --out run

    Example: corrvae fit --features ratings.csv --graph friends.csv --out run --posterior pairwise --steps 20000

    Example: corrvae fit --out run --resume

    Example: torchrun --nproc-per-node 4 -m corrvae fit --features features.csv --graph edges.csv --out run
    """
    given = dict(locals())
    with heed_termination():  # from before the imports, which take seconds and begin threads
        _train(given)


def _train(given: dict[str, Any]) -> None:
    out, quiet = given["out"], given["quiet"]
    with plainly(stopped="stopped before training began; nothing was written"):
        from corrvae.cli.running import Request, resume_command, run_fit
        from corrvae.cli.settings import SETTINGS

        options = {name: value for name, value in given.items() if name in SETTINGS}
        outcome = run_fit(Request(out, options, given["config"], given["resume"], given["overwrite"], quiet))
    with plainly(), to_stdout():
        if not speaks():
            pass
        elif given["as_json"]:
            import json

            typer.echo(json.dumps(outcome.summary, indent=1))
        elif not quiet:
            typer.echo(_sentence(outcome.summary))
    if outcome.stopped == "interrupted":
        if speaks():
            typer.echo(f"stopped before the end; {resume_command(out)} goes on", err=True)
        raise typer.Exit(INTERRUPTED)


def _sentence(summary: dict[str, Any]) -> str:
    shape = f"{summary['rows']:,} points in {summary['components']:,} dimensions"
    how = f"{summary['likelihood']} likelihood, {summary['steps']:,} steps"
    return f"The model is in {summary['out']}: {shape} ({how})"
