"""The commands that tell what is there: the spanning weights of a graph, the facts of a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.application import app
from corrvae.cli.exits import plainly
from corrvae.cli.outputs import JsonOption, OutOption, Output, QuietOption, RunArgument, to_stdout, warnings_said
from corrvae.cli.together import as_ranks, speaks


@app.command()
def weights(
    graph: Annotated[Path, typer.Argument(metavar="GRAPH", help="File of edges: CSV, TSV, blanks or Parquet.")],
    method: Annotated[str, typer.Option(help="auto, exact, sketch or sample.")] = "auto",
    conductance: Annotated[str | None, typer.Option(help="Column of conductances, by its name.")] = None,
    epsilon: Annotated[float, typer.Option(help="Error to allow a sketch or sample.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of a sketch or sample.")] = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute the spanning weights of a graph: how often each edge is in a random maximal acyclic subgraph.

    They are what the edges of a graph weigh in training. A bridge weighs 1; an edge with many ways around it, little.

    Example: corrvae weights edges.csv --out weights.csv
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks():
        output.check()
        from corrvae.answers.spanning import spanning_table

        with warnings_said(output.say):
            table = spanning_table(
                graph, method=method, conductance=conductance, epsilon=epsilon, seed=seed, progress=output.progress
            )
        output.say(table.facts["route"])
        output.give(table)


@app.command()
def info(
    run: RunArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the shards of features with their checksums too.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Tell what a run is: its model, its data, how training ended, its size, the versions that wrote it.

    Files that do not match their checksums are refused. Features that a model keeps in shards are read for that, which
    may take long, only with --check.

    Example: corrvae info run/
    """
    output = Output(None, as_json, quiet)
    with plainly():
        from corrvae.answers.description import describe
        from corrvae.answers.run import Run
        from corrvae.shards import ShardedMatrix

        opened = Run.open(run)
        if check and isinstance(opened.features_, ShardedMatrix):
            opened.features_.check()
        facts = describe(opened)
        if as_json:
            output.document(facts)
            return
        if not speaks():
            return
        with to_stdout():
            for subject, known in facts.items():
                typer.echo(subject)
                for name, value in known.items():
                    typer.echo(f"  {name.replace('_', ' ')}: {_in_words(value)}")


def _in_words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)
