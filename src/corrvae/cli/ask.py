"""The commands that ask a trained run: embeddings, neighbours, links, matches, clusters, scores."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from corrvae.cli.application import app
from corrvae.cli.exits import plainly
from corrvae.cli.outputs import (
    IdColumnOption,
    JsonOption,
    LayoutOption,
    MetricOption,
    OutOption,
    Output,
    QuietOption,
    RunArgument,
    to_stdout,
    warnings_said,
)
from corrvae.cli.together import as_ranks


@app.command()
def embed(
    run: RunArgument,
    features: Annotated[Path | None, typer.Option(help="Points to embed; otherwise those of training.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write, .csv, .parquet or .npy; otherwise CSV goes to stdout.")
    ] = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Embed points: the mean z0, z1, ... and the standard deviation s0, s1, ... of each, under its id.

    An .npy file holds both side by side, the means first; its ids are in a file .ids.csv beside it.

    Example: corrvae embed run/ --features new.csv --out z.parquet
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks() as ranks:
        output.check(".csv", ".parquet", ".npy")
        from corrvae.answers.embedding import embedding_blocks, write_blocks, write_npy
        from corrvae.answers.run import Run
        from corrvae.answers.writing import CsvWriter, JsonWriter, writing

        with warnings_said(output.say):
            with ranks.agreed():
                opened = Run.open(run)
                rows = None if features is None else opened.read(features, id_column=id_column, layout=layout)
            blocks = embedding_blocks(opened, rows)
            n_components = opened.embedding_.shape[1]
            if not ranks.is_first:
                for _ in blocks:  # its share is what it is there for
                    pass
                return
            if out is None:
                try:
                    with to_stdout():
                        writer = (
                            JsonWriter(sys.stdout, {"n_components": n_components}) if as_json else CsvWriter(sys.stdout)
                        )
                        write_blocks(writer, blocks)
                        writer.close()
                finally:
                    if ranks.count > 1 and isinstance(sys.exception(), typer.Exit):
                        for _ in blocks:  # the reader has left, but the other processes go on
                            pass
                return
            if out.suffix.lower() == ".npy":
                n_rows = len(opened.ids_) if rows is None else rows.n_rows
                output.say(f"the ids are in {write_npy(out, blocks, n_rows, n_components)}")
            else:
                with writing(out, {"n_components": n_components}) as writer:
                    n_rows = write_blocks(writer, blocks)
            output.wrote(n_rows, {"n_components": n_components})


@app.command()
def neighbors(
    run: RunArgument,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Neighbours of each point.")] = 10,
    query: Annotated[
        str | None, typer.Option(help="Ids separated by commas, or a file with one in each line; otherwise all.")
    ] = None,
    features: Annotated[Path | None, typer.Option(help="File of new points whose neighbours to find.")] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="File of points to search among; otherwise those of training.")
    ] = None,
    metric: MetricOption = "expected_distance",
    unlinked: Annotated[bool, typer.Option("--unlinked", help="Leave out those that the graph links.")] = False,
    out: OutOption = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the exact nearest neighbours of points, best first; never a point itself.

    Each row has the score, the parts that sum to it, and which scores are better.

    Examples: corrvae neighbors run/ --k 5 --query ann,bob;
    corrvae neighbors run/ --features new.csv --out neighbors.parquet
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks() as ranks:
        output.check()
        if query is not None and features is not None:
            raise ValueError("--query asks about known points and --features about new ones: give one of them")
        from corrvae.answers.naming import read_ids
        from corrvae.answers.questions import ask_neighbors
        from corrvae.answers.run import Run

        ids = None if query is None else read_ids(query)
        with warnings_said(output.say):
            with ranks.agreed():
                opened = Run.open(run)
                among, rows = (
                    None if path is None else opened.read(path, id_column=id_column, layout=layout)
                    for path in (candidates, features)
                )
            table = ask_neighbors(
                opened,
                rows if ids is None else ids,
                k,
                metric=metric,
                candidates=among,
                unlinked=unlinked,
                say=output.say,
                progress=output.progress,
            )
        output.give(table)


@app.command()
def links(
    run: RunArgument,
    top: Annotated[int, typer.Option(min=1, help="How many links.")] = 1000,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The score: expected_distance, log_odds, mean_distance or cosine; otherwise log_odds, and "
            "expected_distance for a pairwise model.",
            metavar="METRIC",
        ),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Points to look among; otherwise those of training. Ids say what is linked.")
    ] = None,
    out: OutOption = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the most likely new links: the best of all pairs that the graph does not link, exactly.

    Each row has the score, the parts that sum to it, and which scores are better.

    Example: corrvae links run/ --top 100 --out links.csv
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks() as ranks:
        output.check()
        from corrvae.answers.questions import ask_links
        from corrvae.answers.run import Run

        with warnings_said(output.say):
            with ranks.agreed():
                opened = Run.open(run)
                rows = None if features is None else opened.read(features, id_column=id_column, layout=layout)
            table = ask_links(opened, top, metric=metric, features=rows, say=output.say, progress=output.progress)
        output.give(table)


@app.command()
def match(
    run: RunArgument,
    left: Annotated[Path, typer.Option(help="File of features of one list.")],
    right: Annotated[Path, typer.Option(help="File of features of the other.")],
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="No point in two pairs, and the best sum of scores.")
    ] = False,
    metric: MetricOption = "expected_distance",
    out: OutOption = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Match two lists of points: each of the left one with its best on the right.

    Each row has the score, the parts that sum to it, and which scores are better.

    Example: corrvae match run/ --left a.csv --right b.csv --one-to-one
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks() as ranks:
        output.check()
        from corrvae.answers.questions import ask_matches
        from corrvae.answers.run import Run

        with warnings_said(output.say):
            with ranks.agreed():
                opened = Run.open(run)
                sides = [opened.read(path, id_column=id_column, layout=layout) for path in (left, right)]
            table = ask_matches(
                opened, *sides, one_to_one=one_to_one, metric=metric, say=output.say, progress=output.progress
            )
        output.give(table)


@app.command()
def cluster(
    run: RunArgument,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many groups.")] = 2,
    method: Annotated[str, typer.Option(help="auto, spectral or kmeans.")] = "auto",
    features: Annotated[Path | None, typer.Option(help="Points to group; otherwise those of training.")] = None,
    seed: Annotated[int, typer.Option(help="Of the starts of k-means.")] = 0,
    out: OutOption = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Divide points into groups, numbered by size from 0.

    Up to 20,000 points this is spectral clustering of their nearest neighbours by expected distance; beyond, k-means of
    their means. Which one it was is told.

    Example: corrvae cluster run/ -k 4 --out clusters.csv
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks() as ranks:
        output.check()
        from corrvae.answers.questions import ask_clusters
        from corrvae.answers.run import Run

        with warnings_said(output.say):
            with ranks.agreed():
                opened = Run.open(run)
                rows = None if features is None else opened.read(features, id_column=id_column, layout=layout)
            table = ask_clusters(
                opened, k, method=method, features=rows, seed=seed, say=output.say, progress=output.progress
            )
        output.say(table.facts["route"])
        output.give(table)


@app.command()
def score(
    run: RunArgument,
    pairs: Annotated[Path, typer.Option(help="File whose first two columns are ids.")],
    metric: MetricOption = "expected_distance",
    features: Annotated[Path | None, typer.Option(help="Points that the ids are of; otherwise training's.")] = None,
    out: OutOption = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score given pairs of points, in the order of their file.

    Each row has the score, the parts that sum to it, and which scores are better.

    Example: corrvae score run/ --pairs pairs.csv --metric log_odds
    """
    output = Output(out, as_json, quiet)
    with plainly(), as_ranks() as ranks:
        output.check()
        from corrvae.answers.naming import read_pairs
        from corrvae.answers.questions import ask_scores
        from corrvae.answers.run import Run

        with warnings_said(output.say):
            with ranks.agreed():
                opened = Run.open(run)
                rows = None if features is None else opened.read(features, id_column=id_column, layout=layout)
            table = ask_scores(opened, read_pairs(pairs), metric=metric, features=rows)
        output.give(table)
