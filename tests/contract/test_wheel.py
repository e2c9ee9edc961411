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
    files = [path for path in (ROOT / "src" / "corrvae").rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT / "src").as_posix() for path in files if "__pycache__" not in path.parts}
    assert {name for name in names if not name.split("/")[0].endswith(".dist-info")} == expected
    assert f"corrvae-{corrvae.__version__}.dist-info/METADATA" in names


def test_it_works_where_it_is_unpacked(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = (
        "import corrvae; from corrvae import CorrelationGraph, spanning_weights; print(corrvae.__file__); "
        "print(spanning_weights(CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2)])).weights.sum().round(6))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    where, total = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path)
    assert total == "2.0"
