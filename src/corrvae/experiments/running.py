"""One run of an experiment: what it is to do, its record, and the process of its own that makes it."""

import json
import multiprocessing
import os
import platform
import shutil
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, final

from corrvae import __version__
from corrvae.errors import CorrvaeError, DataFileError
from corrvae.experiments.recipes import Entry, Recipe, Settings
from corrvae.experiments.records import Record, read_record, record_path, write_record

_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "torch_geometric")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_COMPARED = ("method", "parameters", "metric", "augment", "graph_features")


@final
@dataclass(frozen=True)
class Job:
    """One model with one seed: what to train on what data, the folder of results, and the command that repeats it."""

    task: str
    recipe: str
    entry: Entry
    data: Settings
    seed: int
    folder: Path
    command: str

    @property
    def title(self) -> str:
        """The job in a few words."""
        return f"{self.entry.label}, seed {self.seed}"

    @property
    def path(self) -> Path:
        """Where its record is kept."""
        return record_path(self.folder, self.task, self.recipe, self.entry.model, self.seed)

    @property
    def checkpoint(self) -> Path:
        """Where its training is saved if it is interrupted."""
        return self.folder / ".partial" / self.task / self.recipe / self.entry.model / f"seed-{self.seed}"

    def finished(self) -> Record | None:
        """Return its record if there is one; raise a `DataFileError` if that has other settings or other data."""
        if not self.path.exists():
            return None
        record = read_record(self.path)
        wanted = json.loads(json.dumps({**asdict(self.entry), "data": dict(self.data)}))  # tuples are lists in a record
        found = {**record.settings, "data": record.data.get("settings", wanted["data"])}
        for name in (*_COMPARED, "data"):
            if (made := found.get(name)) != wanted[name]:
                problem = f"was made with other settings ({name}: {made!r}, and now {wanted[name]!r})"
                raise DataFileError(self.path, f"{problem}; remove it, or choose another --out")
        return record


def jobs_of(recipe: Recipe, n_seeds: int, folder: Path, command: str) -> list[Job]:
    """Return the jobs of a recipe: every model with seed 0, then with the next."""
    return [
        Job(recipe.task, recipe.name, entry, recipe.data, seed, folder, command)
        for seed in range(n_seeds)
        for entry in recipe.entries
    ]


def run_in_process(job: Job, *, threads: int | None = None, progress: bool = False) -> None:
    """Run a job in a new process, which measures the true peak of its memory.

    Ctrl-C is passed on once: training finishes its step and writes its checkpoint, from which the next call resumes.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(threads,)) as pool:
        try:
            pool.submit(perform, job, progress=progress).result()
        except BrokenProcessPool:
            raise CorrvaeError("its process ended (killed: out of memory?)") from None
        except KeyboardInterrupt:
            for process in multiprocessing.active_children():
                os.kill(process.pid or 0, signal.SIGINT if os.name == "posix" else signal.SIGTERM)
            raise


def _prepare(threads: int | None) -> None:
    """Prepare a new process for a run."""
    if threads is not None:  # the libraries, which are not imported yet, read these
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    with suppress(OSError, AttributeError):
        os.setsid()  # a terminal sends Ctrl-C to everyone in its session, and the parent passes it on as well
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a batch system may have it ignored


def perform(job: Job, *, progress: bool = False) -> Record:
    """Run a job in this process, write its record, and remove its checkpoint; with `progress` training shows a bar."""
    import torch

    from corrvae.experiments.models import Run

    begun = time.monotonic()
    run = Run(job.seed, job.checkpoint, progress)
    outcome = import_module(f"corrvae.experiments.{job.task}").run(job.entry, job.data, run)
    versions = {"python": platform.python_version(), "corrvae": __version__}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    record = Record(
        task=job.task,
        recipe=job.recipe,
        model=job.entry.model,
        label=job.entry.label,
        seed=job.seed,
        versions=versions,
        command=job.command,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begun + (run.earlier_seconds or 0.0), 2),
        peak_megabytes=round(peak_megabytes(), 1),
        machine={"threads": torch.get_num_threads(), "processors": os.cpu_count() or 1},
        **vars(outcome),
    )
    write_record(job.folder, record)
    shutil.rmtree(job.checkpoint, ignore_errors=True)
    for folder in list(job.checkpoint.parents)[:4]:  # up to .partial
        with suppress(OSError):  # others are in it
            folder.rmdir()
    return record


def peak_megabytes() -> float:
    """Return the peak memory of this process so far."""
    with suppress(OSError, StopIteration):
        # unlike getrusage's, this number does not begin with the memory of the parent process
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="ignore").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    import psutil

    info: Any = psutil.Process().memory_info()
    return getattr(info, "peak_wset", info.rss) / 2**20
