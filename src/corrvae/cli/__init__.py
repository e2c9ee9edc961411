"""The command line: read with io, call the estimator, write the result's table.

A file holds a few commands that belong together; a command is a function with the decorator `command`, and its file a
line below. Heavy imports are inside the functions, so that help answers at once.
"""

# Help lists the commands in this order.
# ruff: isort: off
from corrvae.cli import fit as _fit  # noqa: F401
from corrvae.cli import ask as _ask  # noqa: F401
from corrvae.cli import draw as _draw  # noqa: F401
from corrvae.cli import experiments as _experiments  # noqa: F401
from corrvae.cli import data as _data  # noqa: F401
from corrvae.cli.app import app as app
from corrvae.cli.app import command as command
# ruff: isort: on


def main() -> None:
    """Run the program."""
    app(prog_name="corrvae")
