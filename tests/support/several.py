"""Call functions in several processes that are the workers of one job."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent.parent
# Importing takes seconds, so it is done once, and the workers are forked from there.
_WORKERS = """
import os, pickle, sys, traceback
from datetime import timedelta
from importlib import import_module
import torch, torch.distributed as group
torch.set_num_threads(1)
folder, count = sys.argv[1], int(sys.argv[2])
calls = pickle.load(open(f"{folder}/calls", "rb"))
called = [getattr(import_module(module), function) for module, function, _ in calls]

def be(index):
    group.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=index, world_size=count, timeout=timedelta(seconds=300)
    )
    for number, (function, (*_, arguments)) in enumerate(zip(called, calls)):
        pickle.dump(function(*arguments), open(f"{folder}/result-{number}-{index}", "wb"))
    group.destroy_process_group()

children = []
for index in range(count):
    child = os.fork()
    if child == 0:
        try:
            be(index)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(*codes)
"""


def run_workers(count: int, *calls: tuple[Callable[..., Any], tuple[Any, ...]], ends: tuple[int, ...] = ()) -> list:
    """Call functions of a test module, one after the other, in `count` processes with a process group.

    Return for each call what each worker returned, None for a worker that had ended. `ends` are the exit codes expected
    of the workers, 0 for all by default. Functions are found by their names, so they must be at the top of a module.
    """
    module = sys.modules[calls[0][0].__module__]
    named = [(module.__name__, function.__qualname__, arguments) for function, arguments in calls]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "calls").write_bytes(pickle.dumps(named))
        path = os.pathsep.join(
            map(str, (_ROOT / "src", _ROOT / "tests", _ROOT / "benchmarks", Path(module.__file__ or "").parent, _ROOT))
        )
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", _WORKERS, folder, str(count)]
        started = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            codes, errors = started.communicate(timeout=600)
        finally:
            if started.poll() is None:  # a worker waits for another that is gone
                os.killpg(started.pid, signal.SIGKILL)
                started.communicate()
        assert codes.split() == [str(code) for code in ends or (0,) * count], errors

        def result(number: int, index: int) -> Any:
            place = Path(folder) / f"result-{number}-{index}"
            return pickle.loads(place.read_bytes()) if place.exists() else None

        return [[result(number, index) for index in range(count)] for number in range(len(calls))]
