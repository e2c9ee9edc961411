"""Make runs one after the other, each in a process of its own, and skip those that have a record.

A process of its own measures the true peak of memory, and a run that fails does not stop the others.
"""

import json
import multiprocessing
import os
import platform
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, final

from corrvae import __version__
from corrvae.errors import CorrvaeError, DataFileError
from corrvae.experiments.published import TASKS
from corrvae.experiments.recipes import Entry, Recipe
from corrvae.experiments.records import Record, read_record, record_path, write_record

# Called with what is being done, how much of it is done, and how much there is if that is known.
Report = Callable[[str, int, int | None], None]

_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "torch_geometric")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_COMPARED = ("method", "parameters", "metric", "augment", "graph_features")
# Time in which an interrupted run finishes its step and writes its checkpoint.
_SECONDS_TO_STOP = 60.0


class RunError(CorrvaeError):
    """A run that failed."""


@final
@dataclass(frozen=True)
class Job:
    """One model with one seed: what to train on what data, the folder of results, and the command that repeats it."""

    task: str
    recipe: str
    entry: Entry
    data: dict[str, Any]
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
        """Return its record if there is one; raise a `DataFileError` if that has other settings."""
        if not self.path.exists():
            return None
        record = read_record(self.path)
        wanted = json.loads(json.dumps(asdict(self.entry)))  # tuples are lists in a record
        for name in _COMPARED:
            if (made := record.settings.get(name)) != wanted[name]:
                problem = f"was made with other settings ({name}: {made!r}, and now {wanted[name]!r})"
                raise DataFileError(self.path, f"{problem}; remove it, or choose another --out")
        return record


@final
@dataclass
class Tally:
    """Records of all jobs that are finished, and jobs that failed, with the reason."""

    records: list[Record] = field(default_factory=list)
    failures: list[tuple[Job, str]] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """Which runs failed, in a sentence; ``None`` if none did."""
        names = "; ".join(f"{job.title}: {problem}" for job, problem in self.failures)
        return f"{len(self.failures)} of the runs failed ({names})" if self.failures else None


def jobs_of(recipe: Recipe, n_seeds: int, folder: Path, command: str) -> list[Job]:
    """Return the jobs of a recipe: every model with seed 0, then with the next."""
    return [
        Job(recipe.task, recipe.name, entry, dict(recipe.data), seed, folder, command)
        for seed in range(n_seeds)
        for entry in recipe.entries
    ]


def run_jobs(
    jobs: Iterable[Job],
    *,
    start: Callable[[Job, Report], object],
    quiet: bool = False,
    after: Callable[[], object] = lambda: None,
) -> Tally:
    """Run what has no record yet; a run that fails is reported, and the others are made all the same.

    `start` runs one job: `run_in_process`, or `perform` to stay in this process. `after` is called after each run.
    Progress is written to the standard error: a moving bar on a terminal, a line for each run anywhere.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    jobs, tally = list(jobs), Tally()
    before = [job.finished() for job in jobs]  # all of them first: a bad record should not be found after a long run
    console = Console(stderr=True, quiet=quiet, markup=False, highlight=False, soft_wrap=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        shown = bar.add_task("", total=None)

        def report(doing: str, done: int, total: int | None) -> None:
            bar.update(shown, description=doing, completed=done, total=total)

        for number, (job, record) in enumerate(zip(jobs, before, strict=True), 1):
            again = "" if record is None else ", finished before"
            if record is None:
                console.print(f"{job.title} ({number} of {len(jobs)})")
                bar.reset(shown)
                try:
                    start(job, report)
                except (CorrvaeError, ValueError, ImportError) as error:
                    console.print(f"{job.title}: failed: {error}")
                    tally.failures.append((job, str(error)))
                    continue
                record = read_record(job.path)
                after()
            tally.records.append(record)
            task = TASKS[record.task]
            cost = f"{record.seconds:.0f} s, {record.peak_megabytes:,.0f} MB"
            console.print(f"{job.title}: {task.metric_name} {record.scores[task.metric]:.4f}, {cost}{again}")
    return tally


def run_in_process(job: Job, report: Report, *, threads: int | None = None) -> None:
    """Run a job in a new process.

    Ctrl-C is passed on once: training finishes its step and writes its checkpoint, from which the next call resumes.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(job, sender, threads), daemon=True)
    process.start()
    sender.close()
    try:
        while True:
            event, *content = receiver.recv()
            if event == "progress":
                report(*content)
            elif event == "done":
                return
            elif event == "interrupted":
                raise KeyboardInterrupt
            else:
                raise RunError(content[0])
    except EOFError:
        process.join()
        killed = " (killed: out of memory?)" if process.exitcode == -9 else ""
        raise RunError(f"its process ended with code {process.exitcode}{killed}") from None
    except BaseException:
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        raise
    finally:
        process.join(_SECONDS_TO_STOP)
        if process.is_alive():
            process.kill()
            process.join()
        receiver.close()


def _serve(job: Job, channel: Any, threads: int | None) -> None:
    """Run a job in this process, and send what happens: "progress", then "done", "failed" or "interrupted"."""
    if threads is not None:  # the libraries, which are not imported yet, read these
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    with suppress(OSError, AttributeError):
        os.setsid()  # a terminal sends Ctrl-C to everyone in its session, and the parent passes it on as well
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a batch system may have it ignored
    try:
        perform(job, lambda doing, done, total: channel.send(("progress", doing, done, total)))
        channel.send(("done",))
    except KeyboardInterrupt:
        channel.send(("interrupted",))
    except BrokenPipeError:  # the parent is gone
        pass
    except Exception as error:
        expected = isinstance(error, CorrvaeError | ValueError | ImportError)
        if not expected:
            traceback.print_exc()
        channel.send(("failed", str(error) if expected else f"{type(error).__name__}: {error}"))


def perform(job: Job, report: Report) -> Record:
    """Run a job in this process, write its record, and remove its checkpoint."""
    import torch

    from corrvae.experiments.models import Run

    begun = time.monotonic()
    run = Run(job.seed, job.checkpoint, report)
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
        seconds=round(time.monotonic() - begun + run.earlier_seconds, 2),
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
