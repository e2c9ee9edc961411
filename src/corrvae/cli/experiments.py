"""The commands of the paper's experiments and of data."""

import os
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corrvae.cli.application import app, data_app
from corrvae.cli.exits import INTERRUPTED, plainly
from corrvae.cli.outputs import Output, to_stdout, warnings_said
from corrvae.cli.plot import draw_run
from corrvae.cli.signals import heed_termination
from corrvae.experiments.recipes import RECIPES

if TYPE_CHECKING:
    from corrvae.experiments.running import Tally

_QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
_JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout that tells where it is.")]


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("corrvae-demo"),
    quiet: _QuietOption = False,
) -> None:
    """Train on a small built-in tree, without and with its graph: a table, and a report with pictures.

    It takes two minutes or so. What is in the folder already is not computed again.

    Example: corrvae demo --out demo
    """

    def run() -> "Tally":
        from corrvae.demo import run_demo

        return run_demo(out)

    _run_experiments(run, quiet=quiet)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="Folder of results, as reproduce writes it, or of a trained run.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write; else report.html in the folder, or RUN.html beside that of a run."),
    ] = None,
    as_json: _JsonOption = False,
    quiet: _QuietOption = False,
) -> None:
    """Write a report on results, or on a run: tables and figures in one HTML file that needs no network.

    Example: corrvae report results/
    """
    output = Output(out, as_json, quiet)
    with plainly():
        from corrvae.answers.run import is_run_folder
        from corrvae.pictures.report import write_report

        with warnings_said(output.say):
            path = draw_run(results, out, quiet=quiet) if is_run_folder(results) else write_report(results, out)
        if as_json:
            output.document({"out": str(path)})
        elif not quiet:
            with to_stdout():
                typer.echo(f"The report is in {path}")


def _models_help() -> str:
    """Name the models of every task, those of the recommended recipe first."""
    models: dict[str, dict[str, None]] = {}
    for (task, _), recipe in RECIPES.items():
        models.setdefault(task, {}).update(dict.fromkeys(recipe.models))
    lists = "; ".join(f"for {task} {', '.join(names)}" for task, names in models.items())
    return f"Only these, separated by commas; otherwise all: {lists}."


@app.command()
def reproduce(
    task: Annotated[str, typer.Argument(help="clustering, links or matching.")],
    models: Annotated[str | None, typer.Option(help=_models_help())] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds 0, 1, ...; the recipe says how many otherwise.")] = None,
    recipe: Annotated[str | None, typer.Option(help="recommended (the default) or paper.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small data, nothing to download.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of the data, instead of CORRVAE_DATA.")] = None,
    dataset: Annotated[str | None, typer.Option(help="For matching: ml-1m (the default) to ml-32m.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    threads: Annotated[int | None, typer.Option(help="Threads of a run.")] = None,
    quiet: _QuietOption = False,
) -> None:
    """Repeat an experiment of the paper, and show the results beside the paper's.

    What is finished is not run again; after Ctrl-C, the same command goes on.

    Example: corrvae reproduce clustering --quick
    """

    def run() -> "Tally":
        from corrvae.experiments.reproduce import Request
        from corrvae.experiments.reproduce import reproduce as run_request

        chosen = None if models is None else tuple(name.strip() for name in models.split(",") if name.strip())
        return run_request(Request(task, chosen, seeds, recipe, quick, data, dataset, out, threads))

    _run_experiments(run, quiet=quiet)


def _run_experiments(run: "Callable[[], Tally]", *, quiet: bool) -> None:
    """Run experiments; those that failed, while others went on, are said at the end.

    Imports take a second, in which Ctrl-C may come: `run` makes them itself, so that they are watched too.
    """
    with plainly(stopped="stopped; what is finished is kept, and the same command goes on from there"):
        with heed_termination(), ExitStack() as stack:
            if quiet:  # the table is left out with the progress: it is in the folder
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(redirect_stdout(nowhere))
                stack.enter_context(redirect_stderr(nowhere))
            tally = run()
        from corrvae.experiments.reproduce import failures_of
    if problem := failures_of(tally):
        typer.echo(problem, err=True)
        raise typer.Exit(INTERRUPTED)


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="ml-1m, ml-10m, ml-20m, ml-25m, ml-32m or epinions.")],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take it from this file or folder instead.")
    ] = None,
    as_json: _JsonOption = False,
    quiet: _QuietOption = False,
) -> None:
    """Put a data set into the data folder: CORRVAE_DATA, else the platform's cache.

    It comes from its publisher and is checked; a download that broke off goes on where it was.

    Example: corrvae data get ml-1m
    """
    with plainly(stopped="stopped; what has arrived is kept, and the next try goes on from there"):
        from corrvae.datasets.getting import get

        got = get(name, source, progress=False if quiet else None)
        if as_json:
            facts = {"name": name, "path": str(got.path), "was_there": got.was_there, "terms": got.terms}
            Output(as_json=True).document(facts)
        elif not quiet:
            with to_stdout():
                typer.echo(f"{name} {'was there already' if got.was_there else 'is there now'}: {got.path}")
                typer.echo(got.terms)


@data_app.command("shard")
def data_shard(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLES...",
            help="Long tables (id, item, value) as CSV, TSV or Parquet, also .gz; or folders of such files.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    id_column: Annotated[
        str | None, typer.Option("--id-column", metavar="NAME", help="Column of ids; else the first.")
    ] = None,
    layout: Annotated[str, typer.Option(help="auto refuses tables that look wide; long does not.")] = "auto",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace shards that are there.")] = False,
    as_json: _JsonOption = False,
    quiet: _QuietOption = False,
) -> None:
    """Make a folder of long tables that fit into no memory, which fit, embed and others take as --features.

    Ids and items must fit into memory, entries need not. Rows of the same id and item are added up.

    Example: corrvae data shard ratings/ --out shards/
    """
    output = Output(as_json=as_json, quiet=quiet)
    with plainly(stopped="stopped; nothing was written"):
        from corrvae.reading.sharding import shard_tables

        with warnings_said(output.say):
            made = shard_tables(
                tables,
                out,
                id_column=id_column,
                layout=layout,
                overwrite=overwrite,
                progress=output.progress,
                say=output.say,
            )
        if as_json:
            counts = {"rows": made.n_rows, "columns": made.n_columns, "entries": made.n_entries}
            output.document({"out": str(out), **counts, "shards": made.n_shards})
        else:
            entries = f"{made.n_entries:,} entries, in {made.n_rows:,} rows of {made.n_columns:,} features"
            output.say(f"{entries}, are in {out}")
