"""Call a function in several processes that are the ranks of one job."""

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
# Importing takes seconds, so it is done once, and the ranks are forked from there.
_RANKS = """
import os, pickle, sys, traceback
from datetime import timedelta
from importlib import import_module
import torch, torch.distributed as group
torch.set_num_threads(1)
folder, count, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
module, function = name.rsplit(".", 1)
called = getattr(import_module(module), function)
arguments = pickle.load(open(f"{folder}/arguments", "rb"))

def be(index):
    group.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=index, world_size=count, timeout=timedelta(seconds=300)
    )
    pickle.dump(called(*arguments), open(f"{folder}/result-{index}", "wb"))
    group.destroy_process_group()

children = []
for index in range(count):
    child = os.fork()
    if child == 0:
        try:
            be(index)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stderr.flush()
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))
"""


def run_ranks(count: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call a function of a test module in `count` processes with a process group; give what each returned, in order.

    The function is found by its name, so it must be at the top of a module that can be imported from `tests`.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "arguments").write_bytes(pickle.dumps(arguments))
        beside = Path(sys.modules[function.__module__].__file__ or "").parent
        path = os.pathsep.join(map(str, (_ROOT / "src", _ROOT / "tests", beside, _ROOT)))
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", _RANKS, folder, str(count), name]
        started = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            words = started.communicate(timeout=600)[1]
        finally:
            if started.poll() is None:  # a rank waits for another that is gone
                os.killpg(started.pid, signal.SIGKILL)
                started.communicate()
        assert started.returncode == 0, words
        return [pickle.loads((Path(folder) / f"result-{index}").read_bytes()) for index in range(count)]
