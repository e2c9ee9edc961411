"""The command line, called in this process."""

import csv
import io

from typer.testing import CliRunner

from corrvae.cli import app


def run(*arguments):
    """Call the program."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="corrvae")


def rows(*arguments):
    """Call a command that prints a table, and return its rows."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def failure(*arguments, code=2):
    """Call a command that fails, and return its one sentence."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    (line,) = result.stderr.splitlines()
    return line
