"""Small pieces of work that tests of faults and ``faults.py`` interrupt, and the process that runs and kills them.

A `Helper` is a process that has imported everything. It forks a child for each call and kills it (SIGKILL) when asked
to: after so many beats of the work, and then a moment. So a kill comes after known progress, on any machine, and yet
anywhere within a step or a write.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

KILLED = -int(signal.SIGKILL)
Beat = Callable[[], object]


class Ending(NamedTuple):
    """How a call ended: exit code (negative for a signal), and what it returned or the error it raised."""

    code: int
    result: Any


class Helper:
    """Runs functions of this module in children of one process."""

    def __enter__(self) -> "Helper":
        # The threshold has glibc return large arrays to the system at once, so that memory can be measured.
        settings = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error", "MALLOC_MMAP_THRESHOLD_": "65536"}
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, env=os.environ | settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, function: Callable[..., Any], *, beats: int | None = None, moment: float = 0, **given: Any) -> Ending:
        """Call a function in a child; with `beats`, kill the child `moment` seconds after so many beats."""
        call = {"function": function.__name__, "beats": beats, "moment": moment, "given": given}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(call), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the helper itself ended, with {self._process.wait()}")
        return Ending(*json.loads(answer))


def serve() -> None:
    """Answer the calls of a `Helper`."""
    import torch._dynamo  # the first step of an optimiser imports this, in every child

    import corrvae.estimator  # noqa: F401

    torch.set_num_threads(1)
    for line in sys.stdin:
        call = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            work(call, writing)
        os.close(writing)
        heard = b""
        if call["beats"] is not None:
            while heard.count(b".") < call["beats"] and (byte := os.read(reading, 1)):
                heard += byte
            time.sleep(call["moment"])
            os.kill(child, signal.SIGKILL)  # of a child that has ended too: nobody has waited for it yet
        with os.fdopen(reading, "rb") as stream:
            result = (heard + stream.read()).lstrip(b".")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([code, None if code < 0 else json.loads(result)]), flush=True)


def work(call: dict[str, Any], writing: int) -> None:
    """Do what a call asks for, write a dot at every beat and the result at the end, and end the process."""
    code = 0
    try:
        result = globals()[call["function"]](beat=lambda: os.write(writing, b"."), **call["given"])
    except BaseException as error:
        code, result = 1, f"{type(error).__name__}: {error}"
    os.write(writing, json.dumps(result).encode())
    os._exit(code)


# Work


def data() -> tuple[Any, Any]:
    """Counts, and a ring with a few chords."""
    import numpy as np

    from corrvae import CorrelationGraph

    n = 40
    counts = np.random.default_rng(0).poisson(0.7, (n, 8)).astype(np.float32)
    counts[:, 0] += 1
    edges = [(i, (i + 1) % n) for i in range(n)] + [(i, i + n // 2) for i in range(0, n // 2, 5)]
    return counts, CorrelationGraph.from_edges(edges)


def estimator(steps: int, **changes: Any) -> Any:
    """A model that exercises all that a checkpoint holds: pairs, dropout, a learned tau, validation."""
    from corrvae import CorrelatedVAE, Pairwise

    settings: dict[str, Any] = {
        "n_components": 2,
        "family": Pairwise("bilinear", hidden=(5,), pair_batch=7, dropout=0.3),
        "likelihood": "multinomial",
        "hidden": (6,),
        "tau": "learned",
        "dropout": 0.2,
        "max_steps": steps,
        "batch_size": 8,
        "edge_batch_size": 9,
        "validation_fraction": 0.2,
        "device": "cpu",
        "random_state": 0,
    }
    return CorrelatedVAE(**{**settings, **changes})


def digest(model: Any) -> str:
    """Return a code of everything that a fitted model has learned, to the bit, but not of the seconds that it took."""
    code = blake2b(f"{model.n_steps_} {model.best_step_} {model.stopped_}".encode(), digest_size=16)
    for name, tensor in sorted(model.model_.state_dict().items()):
        code.update(name.encode() + tensor.numpy().tobytes())
    for array in (model.embedding_, model.stddev_, model.weights_, model.tau_):
        code.update(array.tobytes())
    for name, column in sorted(model.history_.items()):
        if name != "seconds":
            code.update(name.encode() + column.tobytes())
    return code.hexdigest()


def train(folder: str | None, steps: int, beat: Beat = int, largest_file: int | None = None) -> str:
    """Train with a checkpoint after each step, or resume from one; a beat is a step."""
    from corrvae.training import Checkpoint

    if largest_file is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    counts, graph = data()
    callbacks = [lambda progress: beat()]
    if folder is not None:
        callbacks.append(Checkpoint(folder, steps=1))
    return digest(estimator(steps).fit(counts, graph=graph, callbacks=callbacks))


def save(folder: str, models: list[str], beat: Beat = int) -> None:
    """Write models over each other without end; a beat is a save."""
    from corrvae import load

    loaded = [load(model) for model in models]
    while True:
        for model in loaded:
            model.save(folder)
            beat()


def search_mapped(folder: str, n_neighbors: int, beat: Beat = int) -> dict[str, int]:
    """Fit, embed and search mapped features; return the bytes that this process had of its own at most meanwhile."""
    import numpy as np

    from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise
    from corrvae.io import open_mapped

    with OwnMemory() as memory:
        matrix = open_mapped(folder)
        rows = np.arange(matrix.shape[0])
        graph = CorrelationGraph(np.stack([rows[:1000], rows[1:1001]], axis=1), len(rows))
        family = Pairwise("bilinear", hidden=(4,), dropout=0.2)
        model = CorrelatedVAE(2, family=family, hidden=(8,), max_steps=20, device="cpu", random_state=0)
        model.fit(matrix, graph=graph)
        embedded = len(model.transform(matrix))
        found = model.kneighbors(ids=rows[:50], n_neighbors=n_neighbors).ids.size
    return {"rows": embedded, "found": found, "own_bytes": memory.most}


class OwnMemory:
    """Measures the memory that belongs to this process alone (RssAnon), above what it had before: not mapped files."""

    def __enter__(self) -> "OwnMemory":
        self._before, self.most, self._over = self._now(), 0, Event()
        self._watcher = Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, self._now() - self._before)

    @staticmethod
    def _now() -> int:
        return 1024 * int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0])


if __name__ == "__main__":
    warnings.simplefilter("error")
    serve()
