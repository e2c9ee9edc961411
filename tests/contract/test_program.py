"""The program as it was installed: the script beside this Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import corrvae
from support.fits import SMALL, write_points


@pytest.fixture
def program(tmp_path):
    """Start the script in a temporary folder."""
    script = shutil.which("corrvae", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip(f"there is no script corrvae beside {sys.executable}: the package is not installed")
    source = str(Path(corrvae.__file__).parent.parent)

    def start(*arguments, **variables):
        environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run([script, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return start


def test_the_script_tells_its_version_and_what_is_wrong(program):
    assert program("--version").stdout == f"{corrvae.__version__}\n"
    wrong = program("fit", "--nope")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.endswith("; corrvae fit --help tells what there is\n")
    assert len(wrong.stderr.splitlines()) == 1


def test_the_script_goes_from_two_files_to_neighbours(program, tmp_path):
    write_points(tmp_path)
    files = ("--features", "features.csv", "--graph", "edges.csv")
    fitted = program("fit", *files, "--out", "run", *SMALL, "--quiet")
    assert (fitted.returncode, fitted.stdout, fitted.stderr) == (0, "", "")
    found = program("neighbors", "run", "--k", "2", "--query", "p5", "--quiet")
    assert (found.returncode, found.stderr) == (0, "")
    assert [line.split(",")[0] for line in found.stdout.splitlines()] == ["query", "p5", "p5"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(program, shell):
    shown = program(_CORRVAE_COMPLETE=f"source_{shell}")
    assert shown.returncode == 0, shown.stderr
    assert "_CORRVAE_COMPLETE" in shown.stdout


def test_a_command_is_completed(program):
    found = program(_CORRVAE_COMPLETE="complete_bash", COMP_WORDS="corrvae nei", COMP_CWORD="1")
    assert found.stdout.split() == ["neighbors"]
