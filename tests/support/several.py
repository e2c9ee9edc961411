"""Call a function in several processes that are the ranks of one job."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent.parent
_CHILD = """
import pickle, sys
from datetime import timedelta
import torch, torch.distributed as group
torch.set_num_threads(1)
folder, index, count, name = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
group.init_process_group(
    "gloo", init_method=f"file://{folder}/meeting", rank=index, world_size=count, timeout=timedelta(seconds=300)
)
module, function = name.rsplit(".", 1)
arguments = pickle.load(open(f"{folder}/arguments", "rb"))
from importlib import import_module
result = getattr(import_module(module), function)(*arguments)
pickle.dump(result, open(f"{folder}/result-{index}", "wb"))
group.destroy_process_group()
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
        children = [
            subprocess.Popen(
                [sys.executable, "-c", _CHILD, folder, str(index), str(count), name],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for index in range(count)
        ]
        try:
            said = [child.communicate(timeout=600)[1] for child in children]
        finally:
            for child in children:
                if child.poll() is None:  # it waits for another that is gone
                    child.kill()
                    child.communicate()
        for child, words in zip(children, said, strict=True):
            assert child.returncode == 0, words
        return [pickle.loads((Path(folder) / f"result-{index}").read_bytes()) for index in range(count)]
