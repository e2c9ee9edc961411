import subprocess
import sys

import pytest
from typer.testing import CliRunner

import corrvae
from corrvae.cli import app
from corrvae.experiments.records import write_record
from support.results import make_record


def test_help_lists_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, corrvae.__version__)


def test_demo_writes_where_it_is_told(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "spanning_weights.png").is_file()


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["data", "get", "--help"], ["report", "--help"]])
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


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    for folder in (taken, taken / "below"):
        result = CliRunner().invoke(app, ["demo", "--out", str(folder)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"{folder}: cannot be written (")
        assert len(result.stderr.splitlines()) == 1


def test_a_report_is_written_and_its_place_told(tmp_path):
    write_record(tmp_path, make_record("links", "vae"))
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert (result.exit_code, result.output) == (0, f"The report is in {tmp_path / 'report.html'}\n")
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_folder_without_results_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = CliRunner().invoke(app, ["report", str(folder)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"{folder}: ")
        assert len(result.stderr.splitlines()) == 1
