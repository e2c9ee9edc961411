"""The commands of the paper's experiments: demo, reproduce, report."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.app import INTERRUPTED, command, is_quiet
from corrvae.cli.output import JsonOption, print_document


@command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("corrvae-demo"),
) -> None:
    """Train on a small built-in tree, without and with its graph: a table, and a report with pictures.

    It takes two minutes or so. What is in the folder already is not computed again.

    Example: corrvae demo --out demo
    """
    from corrvae.experiments.reproduce import demo as run_demo

    _run(run_demo, out)


@command()
def reproduce(
    task: Annotated[str, typer.Argument(help="clustering, links, matching, recommend or robustness.")],
    models: Annotated[
        str | None, typer.Option(help="Only these, separated by commas, such as vae,ind,corr; otherwise all.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds 0, 1, ...; otherwise as many as the recipe has.")] = None,
    recipe: Annotated[
        str,
        typer.Option(
            help="recommended, paper, quick (small data, nothing to download), or another of docs/experiments.md."
        ),
    ] = ("recommended"),
    quick: Annotated[bool, typer.Option("--quick", help="The same as --recipe quick.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of the data, instead of CORRVAE_DATA.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="For matching: ml-1m (the default) to ml-32m, ciao, epinions.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="For matching: random-halves (the default) or two-catalogues.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    threads: Annotated[int | None, typer.Option(help="Threads of a run.")] = None,
) -> None:
    """Repeat an experiment of the paper, and show the results beside the paper's.

    What is finished is not run again: after Ctrl-C, the same command continues.

    Example: corrvae reproduce clustering --quick
    """
    from corrvae.experiments.reproduce import reproduce as run_experiment

    _run(
        run_experiment,
        task,
        models=None if models is None else [name.strip() for name in models.split(",") if name.strip()],
        seeds=seeds,
        recipe="quick" if quick else recipe,
        data=data,
        dataset=dataset,
        protocol=protocol,
        out=out,
        threads=threads,
    )


@command()
def report(
    results: Annotated[Path, typer.Argument(help="Folder of results, as reproduce writes it.")],
    out: Annotated[Path | None, typer.Option(help="File to write; otherwise report.html in the folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a report on results: tables and figures in one HTML file that needs no network.

    Example: corrvae report results/
    """
    from corrvae.experiments.report import write_report

    path = write_report(results, out)
    if as_json:
        print_document({"out": str(path)})
    elif not is_quiet():
        typer.echo(f"The report is in {path}")


def _run(experiments: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Run experiments, and exit with a sentence if not all of them finished."""
    try:
        tally = experiments(*args, **options, quiet=is_quiet())
    except KeyboardInterrupt as error:
        sentence = "interrupted; what is finished is kept, and the same command resumes from there"
        raise KeyboardInterrupt(sentence) from error
    if tally.problem:
        typer.echo(tally.problem, err=True)
        raise typer.Exit(INTERRUPTED)
