"""`corrvae fit` under PyTorch's own launcher: two processes are one run, also when one is killed and when all stop."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from corrvae import load
from support.fits import SMALL, fit, write_points

ROOT = Path(__file__).parent.parent.parent
LAUNCHER = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
PATIENCE = 600.0  # seconds, on a machine that has much else to do


@contextmanager
def start(*arguments, restarts=0):
    """Start the launcher, which ends its processes when it is asked to end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [*LAUNCHER, "--max-restarts", str(restarts), "-m", "corrvae", "fit", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as launcher:
        try:
            yield launcher
        finally:
            launcher.terminate()


def wait_until(happened, launcher):
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert launcher.poll() is None, launcher.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def newest_step(folder):
    return max((int(place.name[5:]) for place in (folder / "checkpoint").glob("step-*")), default=0)


def worker_of(launcher, rank):
    """Give the process id of a rank, by what the launcher told it."""
    with suppress(OSError):  # one of them has just ended
        for child in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
            if f"\0RANK={rank}\0" in f"\0{Path(f'/proc/{child}/environ').read_text()}":
                return int(child)
    return None


def test_two_processes_leave_the_model_of_one(tmp_path):
    features, graph = write_points(tmp_path)
    options = ("--features", features, "--graph", graph, *SMALL, "--posterior", "pairwise", "--validation", "0.2")
    with start(*options, "--out", tmp_path / "two", "--json") as launcher:
        said, errors = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 0, errors
    assert json.loads(said)["steps"] == 40  # once, though there are two
    assert errors.count(f"{features}: 60 rows of 4 features") == 1
    assert errors.count("step 40 of 40") == 1
    assert fit(*options, "--out", tmp_path / "one", "--quiet").exit_code == 0
    two, one = load(tmp_path / "two"), load(tmp_path / "one")
    np.testing.assert_allclose(two.embedding_, one.embedding_, atol=1e-4)
    assert two.best_step_ == one.best_step_
    ours, theirs = (model.kneighbors(n_neighbors=3) for model in (two, one))
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-3)
    assert {place.name for place in (tmp_path / "two").iterdir()} == {
        place.name for place in (tmp_path / "one").iterdir()
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the processes in /proc")
def test_a_killed_process_ends_the_start_and_the_next_start_goes_on_until_it_is_stopped(tmp_path):
    features, graph = write_points(tmp_path)
    out = tmp_path / "run"
    options = ("--features", features, "--graph", graph, *SMALL, "--steps", 10**8, "--checkpoint-every", "20")
    with start(*options, "--out", out, restarts=1) as launcher:
        wait_until(lambda: newest_step(out), launcher)
        first = wait_until(lambda: worker_of(launcher, 1), launcher)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: worker_of(launcher, 1) not in (first, None), launcher)
        reached = newest_step(out)
        wait_until(lambda: newest_step(out) > reached, launcher)
        launcher.terminate()
        _, errors = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 1, errors
    assert errors.count("another process of this run has ended") == 1
    assert f"The last checkpoint is {out / 'checkpoint'}" in errors
    assert errors.count("the processes were started again") == 1
    assert errors.count("stopped before the end") == 1
    model = load(out)
    assert model.stopped_ == "interrupted"
    assert model.n_steps_ > reached
    steps = model.history_["step"]
    assert np.array_equal(steps, np.unique(steps))


@contextmanager
def ranks_by_hand(*command):
    """Start two ranks without a launcher, which would keep their exit codes to itself and end the one that is left."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **told, "PYTHONPATH": str(ROOT / "src")}
    python = [sys.executable, *map(str, command)]
    ranks = []
    try:
        ranks.extend(
            subprocess.Popen(python, env=environment | {"RANK": rank}, stderr=subprocess.PIPE, text=True)
            for rank in ("0", "1")
        )
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def test_the_rank_that_is_left_ends_with_3_and_nobody_else_comes_into_the_folder_meanwhile(tmp_path):
    features, graph = write_points(tmp_path)
    out = tmp_path / "run"
    options = ("--features", features, "--graph", graph, *SMALL, "--out", out, "--quiet")
    training = ("-m", "corrvae", "fit", *options, "--steps", 10**8, "--checkpoint-every", "20")
    with ranks_by_hand(*training) as (first, second):
        wait_until(lambda: newest_step(out), first)
        for more in (options, (*options, "--overwrite"), ("--out", out, "--resume")):
            refused = fit(*more)
            assert refused.exit_code == 2
            assert refused.stderr.startswith(f"{out}: another corrvae is training in this folder")
        second.kill()
        _, errors = first.communicate(timeout=PATIENCE)
        assert first.returncode == 3, errors
    assert errors.count("another process of this run has ended") == 1
    assert f"The last checkpoint is {out / 'checkpoint'}" in errors
    assert newest_step(out) > 0


THREADS_LEFT = """
import sys
from pathlib import Path
import numpy as np
from corrvae import CorrelatedVAE
from corrvae.ranks import join_ranks

def names():
    return [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]

with join_ranks():
    CorrelatedVAE(2, hidden=(4,), max_steps=2, device="cpu", random_state=0).fit(np.eye(10))
    print("inside", *names(), file=sys.stderr)
print("after", *names(), file=sys.stderr)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the threads in /proc")
def test_no_thread_of_the_ranks_is_left_to_meet_the_end_of_python():
    """One that lets go of a tensor while Python ends would abort the process, which has done all it was to do."""
    with ranks_by_hand("-c", THREADS_LEFT) as ranks:
        for rank in ranks:
            inside, after = rank.communicate(timeout=PATIENCE)[1].splitlines()
            assert "gloo" in inside
            assert "gloo" not in after
            assert rank.returncode == 0
