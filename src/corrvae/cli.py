"""The command line. Heavy imports wait until a command needs them, so that help answers at once."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Correlated variational auto-encoders: embeddings for data points whose correlations are known as a graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _corrvae(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from corrvae import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("corrvae-demo"),
) -> None:
    """Show what there is on built-in graphs: spanning weights, in a table and a picture.

    Example: corrvae demo --out /tmp/demo
    """
    from corrvae.demo import run_demo
    from corrvae.errors import CorrvaeError

    try:
        run_demo(out)
    except CorrvaeError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
