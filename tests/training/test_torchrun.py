"""`torchrun -m corrvae fit`: one model of two processes, as one process trains it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from corrvae import load
from support.fits import SMALL, fit, write_points

SOURCE = Path(__file__).parents[2] / "src"
# Two workers add float32 numbers in another order than one process; 40 steps of Adam leave at least four digits.
TOLERANCE = 1e-4


def test_two_processes_leave_the_model_of_one(tmp_path):
    features, graph = write_points(tmp_path)
    options = (features, graph, *SMALL, "--family", "pairwise", "--validation-fraction", "0.2")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "corrvae")
    command = [sys.executable, *launcher, "fit", *map(str, options), "--out", str(tmp_path / "two")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The model is in") == 1  # once, though there are two
    assert done.stderr.count("60 rows of 4 features") == 1
    assert done.stderr.count("step 40 of 40") == 1
    assert "Warning" not in done.stderr
    assert fit(*options, "--out", tmp_path / "one", "--quiet").exit_code == 0
    two, one = load(tmp_path / "two"), load(tmp_path / "one")
    np.testing.assert_allclose(two.embedding_, one.embedding_, atol=TOLERANCE)
    assert two.best_step_ == one.best_step_
    ours, theirs = (model.kneighbors(n_neighbors=3) for model in (two, one))
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=10 * TOLERANCE)
    assert {place.name for place in (tmp_path / "two").iterdir()} == {
        place.name for place in (tmp_path / "one").iterdir()
    }
