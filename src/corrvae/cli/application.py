"""The program: its name, its version, its groups of commands."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, cast, final

import typer
from typer.core import TyperGroup

from corrvae.cli.exits import BAD_INPUT, INTERRUPTED, drop_output, plainly
from corrvae.cli.together import speaks

# What the command line is wrong by; typer names this one kind of it alone, and some versions carry their own click.
_UsageError = cast(type[Exception], typer.BadParameter.__base__)
# What typer makes of Ctrl-C outside of a command's own care; some versions raise Abort in its place.
_AFTER_CTRL_C = 130


@final
class PlainGroup(TyperGroup):
    """Commands whose wrong use is told in one line on stderr, as everything else that is wrong."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and end the program, unless the caller wants what is raised."""
        try:
            ended = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except _UsageError as error:
            if not standalone_mode:
                raise
            if (sentence := _sentence(error)) and speaks():
                typer.echo(sentence, err=True)
            sys.exit(BAD_INPUT)
        except typer.Abort:
            if not standalone_mode:
                raise
            ended = _AFTER_CTRL_C
        except SystemExit as early:  # by the library below, of a reader who has seen enough of the help
            if not (standalone_mode and isinstance(early.__context__, BrokenPipeError)):
                raise
            drop_output()
            ended = 0
        except OSError as error:  # of help that cannot be written: commands tell their own
            if not standalone_mode:
                raise
            try:
                with plainly():
                    raise error
            except typer.Exit as told:
                ended = told.exit_code
        if standalone_mode and ended == _AFTER_CTRL_C:
            typer.echo("stopped", err=True)
            sys.exit(INTERRUPTED)
        return sys.exit(ended or 0) if standalone_mode else ended


def _sentence(error: Any) -> str:
    """Say what is wrong and where help is; nothing if help itself has been shown in place of a command."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    problem = " ".join(error.format_message().split()).removesuffix(".")
    return problem if error.ctx is None else f"{problem}; {error.ctx.command_path} --help tells what there is"


app = typer.Typer(
    help="Correlated variational auto-encoders: embeddings for data points whose correlations are known as a graph.",
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Tables larger than memory, and the data sets of the experiments.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def _corrvae(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from corrvae import __version__

        typer.echo(__version__)
        raise typer.Exit
