"""The project builds into a wheel that installs and works without its source tree."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import corrvae

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_it_holds_the_whole_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in (source / "corrvae").rglob("*.py")}
    assert expected | {"corrvae/py.typed"} == {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert f"corrvae-{corrvae.__version__}.dist-info/METADATA" in names


def test_it_installs_and_runs(wheel, tmp_path):
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    script = (
        "import corrvae; from corrvae import CorrelationGraph, spanning_weights; print(corrvae.__file__); "
        "print(spanning_weights(CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2)])).weights.sum().round(6))"
    )
    environment = os.environ | {"PYTHONPATH": str(target)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    where, total = done.stdout.split()
    assert Path(where).is_relative_to(target)
    assert total == "2.0"
