"""``python -m corrvae`` is the command line."""

from corrvae.cli import app

app()
