"""The command that draws a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.app import command, notify
from corrvae.cli.output import JsonOption, QuietOption, RandomStateOption, RunArgument, check_out, print_document

_PICTURES = (".html", ".png", ".svg", ".pdf")


@command()
def plot(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="A page, .html, or its map alone, .png, .svg or .pdf; otherwise RUN.html beside the folder."),
    ] = None,
    color: Annotated[
        str,
        typer.Option(
            help="Colour the map by cluster, degree, uncertainty, or a column of a table whose first one holds ids: "
            "FILE:COLUMN."
        ),
    ] = "cluster",
    n_clusters: Annotated[int, typer.Option(min=1, help="Groups, if coloured by cluster.")] = 5,
    method: Annotated[
        str, typer.Option("--map", help="How the map is made: pca, or umap if umap-learn is installed.")
    ] = "pca",
    random_state: RandomStateOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw a run: the map of its embedding, the course of training, linked against unlinked pairs, uncertainty.

    The page is one HTML file that needs no network.

    Example: corrvae plot run/ --out run.html

    Example: corrvae plot run/ --color people.csv:town --out map.png
    """
    check_out(out, _PICTURES)
    path = draw_run(run, out, color=color, n_clusters=n_clusters, method=method, random_state=random_state)
    if as_json:
        print_document({"out": str(path)})
    else:
        notify(f"The picture is in {path}")


def draw_run(
    folder: Path,
    out: Path | None = None,
    *,
    color: str = "cluster",
    n_clusters: int = 5,
    method: str = "pca",
    random_state: int = 0,
) -> Path:
    """Draw the run in a folder, and return the file."""
    from corrvae import load
    from corrvae.plots import draw_embedding, save_figure, write_page

    model = load(folder)
    path = folder.resolve().with_suffix(".html") if out is None else out
    options: dict[str, Any] = {"n_clusters": n_clusters, "method": method, "random_state": random_state}
    options["color"] = color
    if ":" in color:
        name, _, column = color.rpartition(":")
        options |= {"color": read_values(model.ids_, Path(name), column), "color_name": column}
    if path.suffix.lower() == ".html":
        write_page(model, path, title=folder.resolve().name, **options)
    else:
        save_figure(draw_embedding(model, **options), path)
    return path


def read_values(ids: Any, path: Path, column: str) -> dict[Any, Any]:
    """Return a column of a table (CSV, TSV or Parquet) by the ids of points, which are in the table's first column."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from corrvae.errors import DataFileError
    from corrvae.graphs.ids import object_array
    from corrvae.io import find_ids

    if path.suffix.lower() == ".parquet":
        table = parquet.read_table(path)
    else:
        delimiter = "\t" if ".tsv" in path.suffixes else ","
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter))
    if column not in table.column_names[1:]:
        listed = ", ".join(map(repr, table.column_names[1:21]))
        raise DataFileError(path, f"there is no column {column!r} beside the ids; there are {listed or 'none'}")
    names = table.column(0).cast(pa.string()).to_pylist()
    places = find_ids(ids, object_array([str(name) for name in names]))
    values = table.column(column).to_pylist()
    found = {ids[place : place + 1].tolist()[0]: values[row] for row, place in enumerate(places.tolist()) if place >= 0}
    if not found:
        raise DataFileError(path, f"none of its ids, such as {next(iter(names), '')!r}, is that of a point")
    return found
