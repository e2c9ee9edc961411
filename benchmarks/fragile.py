"""Small pieces of work that are interrupted, starved and watched by the tests of faults and by ``faults.py``."""

import hashlib
import os
import runpy
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.cli.signals import heed_termination
from corrvae.errors import FolderError
from corrvae.persistence import read_folder, write_folder
from corrvae.training import Progress
from corrvae.training.checkpoints import KIND as CHECKPOINT

N, FEATURES = 40, 8
NOTE = "note"


def data() -> tuple[np.ndarray, CorrelationGraph]:
    """Counts, and a ring with a few chords."""
    counts = np.random.default_rng(0).poisson(0.7, (N, FEATURES)).astype(np.float32)
    counts[:, 0] += 1
    edges = [(i, (i + 1) % N) for i in range(N)] + [(i, i + N // 2) for i in range(0, N // 2, 5)]
    return counts, CorrelationGraph.from_edges(edges)


def estimator(steps: int, seed: int = 0, **changes: Any) -> CorrelatedVAE:
    """A model that exercises all that a checkpoint holds: pairs, dropout, a learned tau, validation."""
    numbers = {
        "n_components": 2,
        "posterior": "pairwise",
        "pair_network": "bilinear",
        "likelihood": "multinomial",
        "hidden": (6,),
        "pair_hidden": (5,),
        "tau": "learned",
        "dropout": 0.2,
        "max_steps": steps,
        "vertex_batch": 8,
        "edge_batch": 9,
        "pair_batch": 7,
        "evaluate_every": 4,
        "validation_fraction": 0.2,
        "device": "cpu",
        "random_state": seed,
    }
    return CorrelatedVAE(**{**numbers, **changes})


def digest(model: CorrelatedVAE) -> str:
    """A code of everything that a fitted model has learned, to the bit; not of the seconds that it took."""
    total = hashlib.sha256()
    for name, tensor in sorted(model.model_.state_dict().items()):
        total.update(name.encode() + tensor.numpy().tobytes())
    for array in (model.embedding_, model.stddev_, model.weights_, model.tau_):
        total.update(np.ascontiguousarray(array).tobytes())
    for name, column in sorted(model.history_.items()):
        if name != "seconds":
            total.update(name.encode() + column.tobytes())
    total.update(f"{model.n_steps_} {model.best_step_} {model.stopped_}".encode())
    return total.hexdigest()


class GivenUpError(Exception):
    """Raised in the middle of training."""


def train(folder: str | None, steps: int, give_up_at: int | None = None) -> str:
    """Train with a checkpoint after each step, or go on from one."""
    counts, graph = data()
    model = estimator(steps)

    def give_up(progress: Progress) -> None:
        if progress.step == give_up_at:
            raise GivenUpError

    try:
        model.fit(counts, graph=graph, checkpoint=folder, checkpoint_steps=1 if folder else None, callbacks=[give_up])
    except GivenUpError:
        return "given up"
    return digest(model)


def train_warned(folder: str, steps: int) -> dict[str, Any]:
    """Train as `train` does, and give what it warned of too."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        code = train(folder, steps)
    return {"code": code, "said": [str(warning.message) for warning in said]}


def save(folder: str, first: str, second: str, times: int, saved: str | None = None) -> int:
    """Write two models over each other, again and again; a file `saved` grows by a byte for each."""
    models = [load(first), load(second)]
    for number in range(times):
        models[number % 2].save(folder)
        if saved is not None:
            with Path(saved).open("ab") as stream:
                stream.write(b".")
    return times


def recognise(folder: str) -> str:
    """Give the code of the model in a folder."""
    return digest(load(folder))


def write_notes(folder: str, writer: int, times: int) -> dict[str, int]:
    """Write notes over those of others; each has parts that must fit together."""
    refused = 0
    for number in range(times):
        value = float(writer * 1_000_000 + number)
        tensors = {f"w{part}": torch.full((50 * (1 + writer),), value) for part in range(2)}
        arrays = {"a": np.full(10, value)} if number % 2 else {}
        try:
            write_folder(folder, kind=NOTE, document={"value": value}, tensors=tensors, arrays=arrays)
        except FolderError as error:
            if "others keep writing" not in error.problem:
                raise
            refused += 1
    return {"refused": refused}


def read_notes(folder: str, times: int) -> int:
    """Read notes while others write them; whatever is read must be one of them, whole."""
    for _ in range(times):
        found = read_folder(folder, kind=NOTE)
        values = {float(value) for tensor in found.tensors.values() for value in tensor}
        values |= {float(value) for array in found.arrays.values() for value in array}
        if values != {found.document["value"]}:
            raise AssertionError(f"parts of several notes: {sorted(values)}")
    return times


def whole_checkpoints(folder: str) -> int:
    """Count the checkpoints that can be seen, each of which must be whole."""
    places = [place for place in Path(folder).glob("step-*") if (place / "config.json").is_file()]
    for place in places:
        read_folder(place, kind=CHECKPOINT)
    return len(places)


def watch_checkpoints(folder: str, times: int) -> int:
    """Look at the newest checkpoint of a run that others write; count how often there was one."""
    seen = 0
    for _ in range(times):
        steps = sorted(place.name for place in Path(folder).glob("step-*"))
        if steps:
            try:
                read_folder(Path(folder) / steps[-1], kind=CHECKPOINT)
                seen += 1
            except FolderError as error:
                # it made way for the next one between two looks
                if (Path(folder) / steps[-1]).exists():
                    raise AssertionError(str(error)) from error
    return seen


def wait_in_training(folder: str) -> str:
    """Train, and fall asleep in the middle of a step."""
    counts, graph = data()

    def sleep(progress: Progress) -> None:
        if progress.step == 3:
            Path(folder, "asleep").touch()
            time.sleep(300.0)

    with heed_termination():
        estimator(5).fit(counts, graph=graph, callbacks=[sleep])
    return "slept"


def program(arguments: list[str]) -> None:
    """Run the command line."""
    from corrvae.cli import app

    app(arguments)


def script(path: str, folder: str) -> None:
    """Run a Python script as a program, in a folder, with warnings as errors."""
    os.chdir(folder)
    warnings.simplefilter("error")
    runpy.run_path(path, run_name="__main__")
    sys.stdout.flush()


def program_signalled(arguments: list[str], number: int) -> None:
    """Run the command line, which receives a signal as it is about to read its files."""
    from corrvae.cli import running

    read = running.read_inputs

    def signalled(*settings: Any) -> Any:
        signal.raise_signal(signal.Signals(number))
        return read(*settings)

    running.read_inputs = signalled
    program(arguments)


def program_killed(arguments: list[str], folder: str, at: int | None) -> int:
    """Run the command line, and kill it as it is about to do its `at`-th thing to the files of a folder; count them."""
    seen = 0

    def watch(event: str, about: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
            return
        if event == "open" and not (isinstance(about[2], int) and about[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if any(isinstance(part, str | bytes | os.PathLike) and os.fsdecode(part).startswith(folder) for part in about):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    try:
        program(arguments)
    except SystemExit as end:
        if end.code:
            raise
    return seen


def fit_wide(n_rows: int, n_columns: int, spare: int, dense: bool = False) -> dict[str, int]:
    """Fit a sparse table, or its dense form, with so many bytes of memory beyond what is there already."""
    import resource

    rng = np.random.default_rng(0)
    places = rng.integers(0, n_columns, (n_rows, 10))
    offsets = np.arange(0, n_rows * 10 + 1, 10)
    matrix = sparse.csr_array((np.ones(n_rows * 10, np.float32), places.ravel(), offsets), shape=(n_rows, n_columns))
    matrix.sum_duplicates()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, used + spare))
    matrix = matrix.toarray() if dense else matrix
    changes = {"posterior": "independent", "validation_fraction": 0.0, "tau": 0.99, "edge_batch": 1}
    model = estimator(3, **changes).fit(matrix, graph=CorrelationGraph.from_edges([(0, 1)], vertices=range(n_rows)))
    found = model.kneighbors([0, 1], n_neighbors=3)
    return {"rows": len(model.transform(matrix)), "found": int(np.asarray(found.ids).size)}


def fit_shards(folder: str) -> dict[str, int]:
    """Fit features in shards, embed them, and give the most memory that this process had of its own meanwhile."""
    from threading import Event, Thread

    from corrvae.shards import open_shards

    def owned() -> int:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")))

    before, most, over = owned(), 0, Event()

    def look() -> None:
        nonlocal most
        while not over.wait(0.005):
            most = max(most, owned() - before)

    watcher = Thread(target=look)
    watcher.start()
    try:
        matrix = open_shards(folder).matrix
        model = CorrelatedVAE(2, likelihood="multinomial", hidden=(8,), max_steps=5, random_state=0).fit(matrix)
        rows = len(model.transform(matrix))
    finally:
        over.set()
        watcher.join()
    return {"rows": rows, "most": most}


def load_watched(folder: str) -> dict[str, list[str]]:
    """Load a model, and give the files of its folder that were opened and all that could have run code of theirs."""
    load(folder)  # imports what it needs
    opened: list[str] = []
    others: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching:
            return
        if event == "open" and str(arguments[0]).startswith(folder):
            opened.append(Path(str(arguments[0])).name)
        if event in ("exec", "compile", "import", "pickle.find_class", "os.system", "subprocess.Popen", "os.exec"):
            others.append(f"{event} {arguments[0]!r}"[:200])

    sys.addaudithook(watch)
    load(folder)
    watching = False
    return {"opened": sorted(set(opened)), "others": others}


def prepare() -> None:
    """Load compiled kernels before the first fork."""
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    train(None, 8)
