"""The commands on data: spanning weights of a graph, large tables, the data sets of the experiments."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.app import command, data_app, is_quiet, notify, show_progress
from corrvae.cli.output import (
    ConductanceOption,
    DirectedOption,
    IdColumnOption,
    JsonOption,
    LayoutOption,
    OutOption,
    RandomStateOption,
    check_out,
    graph_options,
    print_document,
    print_written,
    write_answer,
)


@command()
def weights(
    graph: Annotated[Path, typer.Argument(metavar="GRAPH", help="Edges: two columns of ids, as CSV, TSV or Parquet.")],
    method: Annotated[str, typer.Option(help="auto, exact, sketch or sample.")] = "auto",
    conductance: ConductanceOption = "auto",
    directed: DirectedOption = None,
    epsilon: Annotated[float, typer.Option(help="Error to allow a sketch or sample.")] = 0.05,
    random_state: RandomStateOption = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the spanning weights of a graph: how often each edge is in a random maximal acyclic subgraph.

    They are what edges weigh in training: a bridge 1, an edge with many ways around it little.

    Example: corrvae weights edges.csv --out weights.csv
    """
    check_out(out)
    import pyarrow as pa

    from corrvae import spanning_weights
    from corrvae.io import read_graph

    read = read_graph(graph, **graph_options(conductance, directed))
    chosen: Any = method
    options = {"epsilon": epsilon, "random_state": random_state, "progress": show_progress()}
    found = spanning_weights(read, method=chosen, **options)
    notify(found.route)
    ends = read.id_pairs
    columns: dict[str, Any] = {name: pa.array(ends[:, k].tolist()) for k, name in enumerate(("source", "target"))}
    if read.conductances is not None:
        columns["conductance"] = read.conductances
    columns["weight"] = found.weights
    if found.standard_errors is not None:
        columns["standard_error"] = found.standard_errors
    facts = {name: getattr(found, name) for name in ("method", "route", "error", "bound", "confidence")}
    write_answer(pa.table(columns), out, as_json=as_json, **facts)


@command(data_app, "convert")
def convert(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Long table (id, item, value) as CSV, TSV or Parquet, also .gz.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Write a table that may be larger than memory as mapped arrays, a folder that fit and others take as features.

    Ids and items must fit in memory, entries need not. Rows of the same id and item are added up.

    Example: corrvae data convert ratings.csv --out ratings/
    """
    from corrvae.io import map_table

    matrix: Any = map_table(table, out, id_column=id_column, layout=layout)
    n_rows, n_columns = map(int, matrix.shape)
    sentence = f"{matrix.nnz:,} entries, in {n_rows:,} rows of {n_columns:,} features, are in {out}"
    print_written(out, sentence, as_json=as_json, rows=n_rows, columns=n_columns, entries=int(matrix.nnz))


@command(data_app, "example")
def example(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to make.")],
    n_people: Annotated[int, typer.Option(min=2, help="How many people.")] = 2000,
    random_state: RandomStateOption = 0,
) -> None:
    """Write files to try things with: who plays which music how often, who knows whom, who lives where.

    Example: corrvae data example music/
    """
    import numpy as np
    import pyarrow as pa

    from corrvae.datasets import listeners
    from corrvae.io import write_table

    data = listeners(n_people, random_state=random_state)
    rows, columns = np.nonzero(data.plays)
    names, styles = data.ids.tolist(), np.array(data.styles)
    ends = data.graph.id_pairs
    tables = {
        "plays": {"person": data.ids[rows].tolist(), "style": styles[columns], "plays": data.plays[rows, columns]},
        "friends": {"person": ends[:, 0].tolist(), "friend": ends[:, 1].tolist()},
        "people": {"person": names, "town": data.towns, "scene": data.scenes},
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, columns_of in tables.items():
        write_table(pa.table(columns_of), out / f"{name}.csv")
    notify(f"plays.csv, friends.csv and people.csv are in {out}")


@command(data_app, "get")
def get(
    name: Annotated[str, typer.Argument(help="A name that corrvae data list shows.")],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take it from this file or folder instead.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put a data set into the data folder: CORRVAE_DATA, otherwise the platform's cache.

    It comes from its publisher, or with --from from you.

    Example: corrvae data get ml-1m
    """
    from corrvae.datasets import CATALOGUE
    from corrvae.datasets import get as get_data

    path = get_data(name, source, quiet=is_quiet())
    terms = CATALOGUE[name].terms
    if as_json:
        print_document({"name": name, "path": str(path), "terms": terms})
    else:
        notify(f"{name} is there: {path}")
        notify(terms)


@command(data_app, "list")
def list_data(as_json: JsonOption = False) -> None:
    """List the data sets of the experiments, and where they are.

    Example: corrvae data list
    """
    from corrvae.datasets import CATALOGUE, locate
    from corrvae.errors import DataFileError

    places: dict[str, str | None] = dict.fromkeys(CATALOGUE)
    for name in CATALOGUE:
        with suppress(DataFileError):  # not there yet
            places[name] = str(locate(name))
    if as_json:
        print_document(places)
        return
    for name, place in places.items():
        source = "" if CATALOGUE[name].addresses else " --from FILE"
        typer.echo(f"{name}: {place or f'not there; corrvae data get {name}{source}'}")
