"""The command line. Heavy imports wait until a command needs them, so that help answers at once."""

# A module of commands adds them to the program; help lists them in this order.
# ruff: isort: off
from corrvae.cli import fit as _fit  # noqa: F401
from corrvae.cli import ask as _ask  # noqa: F401
from corrvae.cli import plot as _plot  # noqa: F401
from corrvae.cli import facts as _facts  # noqa: F401
from corrvae.cli import experiments as _experiments  # noqa: F401
from corrvae.cli.application import app
# ruff: isort: on

__all__ = ["app"]
