"""The command that draws a run."""

from pathlib import Path
from typing import Annotated

import typer

from corrvae.cli.application import app
from corrvae.cli.exits import plainly
from corrvae.cli.outputs import JsonOption, Output, QuietOption, RunArgument, warnings_said


@app.command()
def plot(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="A page, .html, or its map alone, .png; otherwise RUN.html beside the folder.")
    ] = None,
    color: Annotated[
        str | None, typer.Option(metavar="FILE:COLUMN", help="Colour the map by this column; ids are in the first.")
    ] = None,
    clusters: Annotated[int, typer.Option(min=1, help="Otherwise colour it by so many groups.")] = 5,
    projection: Annotated[str, typer.Option("--map", help="pca, or umap if umap-learn is installed.")] = "pca",
    seed: Annotated[int, typer.Option(help="Of what is drawn at random.")] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw a run: the map of its embedding, learning curves, linked against unlinked pairs, certainty.

    The page is one HTML file that needs no network.

    Examples: corrvae plot run/ --out page.html;
    corrvae plot run/ --color people.csv:town --out map.png
    """
    output = Output(out, as_json, quiet)
    with plainly():
        output.check(".html", ".png")
        with warnings_said(output.say):
            path = draw_run(run, out, color=color, clusters=clusters, projection=projection, seed=seed, quiet=quiet)
        if as_json:
            output.document({"out": str(path)})
        else:
            output.say(f"The picture is in {path}")


def draw_run(
    folder: Path,
    out: Path | None,
    *,
    color: str | None = None,
    clusters: int = 5,
    projection: str = "pca",
    seed: int = 0,
    quiet: bool = False,
) -> Path:
    """Draw the run in a folder; give the file.

    Parameters
    ----------
    folder, out, color, clusters, projection, seed, quiet
        The options of the command.
    """
    from corrvae.answers.run import Run
    from corrvae.pictures.run_image import write_map
    from corrvae.pictures.run_page import write_page
    from corrvae.pictures.run_view import view_run

    run = Run.open(folder)
    # not inside: a folder that holds more than a model is not replaced when training saves to it again
    path = folder.resolve().with_name(f"{folder.resolve().name}.html") if out is None else out
    view = view_run(
        run, projection=projection, n_clusters=clusters, color=color, seed=seed, progress=False if quiet else None
    )
    return (write_map if path.suffix.lower() == ".png" else write_page)(view, path)
