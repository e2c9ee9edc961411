import subprocess
import sys

import pytest
from typer.testing import CliRunner

import corrvae
from corrvae.cli import app


def test_help_lists_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, corrvae.__version__)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["demo", "--help"], ["data", "get", "--help"], ["reproduce", "--help"], ["report", "--help"]],
)
def test_help_imports_nothing_heavy(arguments):
    """Help must answer at once, so it may not wait for these."""
    script = f"""
import sys
from corrvae.cli import app
try:
    app({arguments!r})
except SystemExit:
    pass
heavy = ("torch", "numba", "sklearn", "scipy", "numpy", "pyarrow", "matplotlib")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "corrvae", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == corrvae.__version__
