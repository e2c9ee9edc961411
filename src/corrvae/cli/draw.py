"""The command that draws a run."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.app import command, notify, show_progress
from corrvae.cli.output import JsonOption, RandomStateOption, RunArgument, check_out, print_written

_PICTURES = (".html", ".png", ".svg", ".pdf")


@command()
def plot(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="A page, .html, or its map alone, .png, .svg or .pdf; otherwise RUN.html beside the folder."),
    ] = None,
    n_clusters: Annotated[int, typer.Option(min=1, help="Groups that colour the map.")] = 5,
    random_state: RandomStateOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Draw a run: the map of its embedding, the course of training, linked against unlinked pairs, uncertainty.

    The page is one HTML file that needs no network.

    Example: corrvae plot run/ --out run.html

    Example: corrvae plot run/ --out map.png
    """
    check_out(out, _PICTURES)
    from corrvae import load
    from corrvae.plots import draw_embedding, save_figure, write_page

    model = load(run)
    path = run.resolve().with_suffix(".html") if out is None else out
    options = {"n_clusters": n_clusters, "random_state": random_state}
    if path.suffix.lower() == ".html":
        write_page(model, path, title=run.resolve().name, **options)
    else:
        save_figure(draw_embedding(model, **options), path)
    print_written(path, f"The picture is in {path}", as_json=as_json)


@command()
def explore(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="The page, .html; otherwise RUN.map.html beside the folder.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Table of what is known of the points, to show and colour by; ids come first.")
    ] = None,
    n_clusters: Annotated[int | None, typer.Option(min=1, help="Groups; otherwise as many as fit best.")] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="neighbors, pca, or umap if it is installed; otherwise neighbors, or pca for --serve."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show it from a server on this machine, for more than 200,000 points.")
    ] = False,
    port: Annotated[int, typer.Option(help="Where to serve; otherwise a free port.")] = 0,
    random_state: RandomStateOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Write a page to explore a run: search points, select them, see neighbours, links, clusters and what is typical.

    The page is one HTML file that needs no network.

    Example: corrvae explore run/ --out map.html

    Example: corrvae explore run/ --labels towns.csv --out map.html
    """
    check_out(out, (".html",))
    from corrvae import load
    from corrvae.plots.explorer import serve_explorer, write_explorer

    model = load(run)
    options: dict[str, Any] = {"title": run.resolve().name, "n_clusters": n_clusters, "random_state": random_state}
    options["labels"] = None if labels is None else read_labels(model.ids_, labels)
    if layout is not None:
        options["layout"] = layout
    if serve:
        with serve_explorer(model, port=port, **options) as server:
            notify(f"http://localhost:{server.server_port}/ has the map until Ctrl-C")
            with suppress(KeyboardInterrupt):
                server.serve_forever()
        return
    path = run.resolve().with_suffix(".map.html") if out is None else out
    write_explorer(model, path, **options, progress=show_progress())
    print_written(path, f"The map is in {path}", as_json=as_json)


def read_labels(ids: Any, path: Path) -> dict[str, list[Any]]:
    """Return the columns of a table (CSV, TSV or Parquet) beside its first, which holds ids, in the order of points.

    A point that the table lacks has None, and rows of other ids are left out.
    """
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
    names = [str(name) for name in table.column(0).cast(pa.string()).to_pylist()]
    rows = {place: row for row, place in enumerate(find_ids(ids, object_array(names)).tolist()) if place >= 0}
    if not rows:
        raise DataFileError(path, f"none of its ids, such as {next(iter(names), '')!r}, is that of a point")
    order = pa.array([rows.get(place) for place in range(len(ids))], pa.int64())
    return {name: table.column(name).take(order).to_pylist() for name in table.column_names[1:]}
