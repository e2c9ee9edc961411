"""The way of a new user: two CSV files, a model, a stop and its resumption, embeddings, neighbours."""

import csv
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import corrvae
from support.fits import SMALL, contents, fit, write_points

# The script beside this Python, or the module where the package is not installed.
SCRIPT = shutil.which("corrvae", path=str(Path(sys.executable).parent))
INSTALLED = [sys.executable, "-m", "corrvae"] if SCRIPT is None else [SCRIPT]

# Training that is asked to end by the system, at a step that does not depend on how fast the machine is.
STOPPED = """
import os, signal, sys
from corrvae.cli import app, running
def choose(stream, *, quiet):
    return [lambda progress: os.kill(os.getpid(), signal.SIGTERM) if progress.step == 13 else None]
running.choose_progress = choose
app(sys.argv[1:])
"""


@pytest.fixture
def run(tmp_path):
    """Start the program in a temporary folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(corrvae.__file__).parent.parent), "OMP_NUM_THREADS": "1"}

    def start(*arguments, script=None):
        program = INSTALLED if script is None else [sys.executable, "-c", script]
        command = [*program, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return start


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_from_two_files_to_neighbours(run, tmp_path):
    write_points(tmp_path)
    files = ("--features", "features.csv", "--graph", "edges.csv")
    stopped = run("fit", *files, "--out", "run", *SMALL, script=STOPPED)
    assert stopped.returncode == 1, stopped.stderr
    assert stopped.stderr.splitlines()[-1] == "stopped before the end; corrvae fit --out run --resume goes on"
    assert corrvae.load(tmp_path / "run").n_steps_ == 13

    resumed = run("fit", "--out", "run", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == "The model is in run: 60 points in 2 dimensions (gaussian likelihood, 40 steps)\n"
    files = ("--features", tmp_path / "features.csv", "--graph", tmp_path / "edges.csv")
    assert fit(*files, "--out", tmp_path / "whole", *SMALL, "--quiet").exit_code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")

    embedded = run("embed", "run", "--features", "features.csv", "--quiet")
    assert (embedded.returncode, embedded.stderr) == (0, "")
    assert [row["id"] for row in rows(embedded.stdout)] == [f"p{k}" for k in range(60)]

    found = run("neighbors", "run", "--k", "3", "--query", "p5,p59", "--quiet")
    assert (found.returncode, found.stderr) == (0, "")
    assert len(rows(found.stdout)) == 6
