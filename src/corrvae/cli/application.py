"""The program: its name, its version, its groups of commands."""

from typing import Annotated

import typer

app = typer.Typer(
    help="Correlated variational auto-encoders: embeddings for data points whose correlations are known as a graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data sets of the experiments.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def _corrvae(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from corrvae import __version__

        typer.echo(__version__)
        raise typer.Exit
