"""Run one job, in this process or as a process of its own that is told the job and tells how it goes, line by line.

A process of its own gives the true peak of memory, and keeps a failure from taking the other runs along.
"""

import hashlib
import json
import os
import platform
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from corrvae import __version__
from corrvae.errors import CorrvaeError
from corrvae.experiments.jobs import Job
from corrvae.experiments.outcomes import Report, Run
from corrvae.experiments.records import Record, write_record
from corrvae.experiments.spending import Spending, read_spending, spending_path, write_spending

_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "torch_geometric")
_SECONDS_BETWEEN_REPORTS, _SECONDS_BETWEEN_SPENDINGS = 0.25, 5.0


def perform(job: Job, report: Report) -> Record:
    """Run a job, write its record, and remove its checkpoint."""
    begun, before = time.monotonic(), read_spending(job.checkpoint)

    def spent() -> Spending:
        return before.plus(time.monotonic() - begun, peak_megabytes())

    # now and then too: a process that is killed cannot write
    keep = throttled(lambda *_: write_spending(job.checkpoint, spent()), _SECONDS_BETWEEN_SPENDINGS)

    def told(doing: str, done: int, total: int | None) -> None:
        keep(doing, done, total)
        report(doing, done, total)

    experiment = import_module(f"corrvae.experiments.{job.task}")
    try:
        outcome = experiment.run(job.entry, job.data, Run(job.seed, job.checkpoint, told))
    except BaseException:
        write_spending(job.checkpoint, spent())
        raise
    whole = spent()
    record = Record(
        task=job.task,
        recipe=job.recipe,
        model=job.entry.model,
        label=job.entry.label,
        seed=job.seed,
        scores=outcome.scores,
        settings=outcome.settings,
        data=outcome.data,
        versions=library_versions(),
        command=job.command,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(whole.seconds, 2),
        peak_megabytes=round(whole.peak_megabytes, 1),
        history=outcome.history,
        sketches=outcome.sketches,
        machine=machine(),
    )
    write_record(job.folder, record)
    shutil.rmtree(job.checkpoint, ignore_errors=True)
    spending_path(job.checkpoint).unlink(missing_ok=True)
    for folder in list(job.checkpoint.parents)[:4]:  # up to .partial
        with suppress(OSError):  # others wait in it
            folder.rmdir()
    return record


def library_versions() -> dict[str, str]:
    """Give the versions of Python, of corrvae and of what it computes with, and a code of corrvae's own files.

    Examples
    --------
    >>> library_versions()["corrvae"] == __version__
    True
    """
    found = {
        "python": platform.python_version(),
        "corrvae": __version__,
        "source": source_code(Path(__file__).parents[1]),
    }
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def source_code(folder: Path) -> str:
    """Give a short code of the Python files of a package: it tells apart what has the same version.

    Examples
    --------
    >>> len(source_code(Path(__file__).parent))
    12
    """
    whole = hashlib.blake2b(digest_size=6)
    for path in sorted(folder.rglob("*.py")):
        content = hashlib.blake2b(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def machine() -> dict[str, int]:
    """Give how many threads this process computes with, and how many processors there are.

    Examples
    --------
    >>> sorted(machine())
    ['processors', 'threads']
    """
    import torch

    return {"threads": torch.get_num_threads(), "processors": os.cpu_count() or 1}


def peak_megabytes() -> float:
    """Give the most memory that this process has held so far.

    Examples
    --------
    >>> peak_megabytes() > 1
    True
    """
    try:
        with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123  (no file of ours)
            # unlike what getrusage says, this does not begin with what the parent process held
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20  # pyright: ignore[reportAttributeAccessIssue]
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (2**20 if sys.platform == "darwin" else 2**10)


def serve(line: str, tell: Callable[[dict[str, Any]], None]) -> None:
    """Read a job from a line, run it, and tell events: "progress", then one of "done", "failed" and "interrupted"."""
    try:
        job = Job.from_json(line)
        perform(job, throttled(lambda doing, done, total: tell(_progress(doing, done, total))))
        tell({"event": "done"})
    except KeyboardInterrupt:
        tell({"event": "interrupted"})
    except (CorrvaeError, ValueError, ImportError, MemoryError) as error:
        tell({"event": "failed", "problem": str(error) or type(error).__name__})
    except Exception as error:  # a fault of ours: its place is worth knowing
        traceback.print_exc()
        tell({"event": "failed", "problem": f"{type(error).__name__}: {error}"})


def throttled(report: Report, seconds: float = _SECONDS_BETWEEN_REPORTS) -> Report:
    """Pass on a report when what is being done changes, or some time has passed.

    Examples
    --------
    >>> seen = []
    >>> report = throttled(lambda *said: seen.append(said), seconds=60)
    >>> for step in range(3):
    ...     report("training", step, 3)
    >>> report("scoring", 0, None)
    >>> seen
    [('training', 0, 3), ('scoring', 0, None)]
    """
    last: list[Any] = [None, 0.0]

    def passed_on(doing: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if doing != last[0] or now - last[1] >= seconds:
            last[:] = doing, now
            report(doing, done, total)

    return passed_on


def _progress(doing: str, done: int, total: int | None) -> dict[str, Any]:
    return {"event": "progress", "doing": doing, "done": done, "total": total}


def main() -> None:
    """Serve standard input and output; whatever else is printed goes to standard error."""
    output, sys.stdout = sys.stdout, sys.stderr
    # Only who started it sends it SIGINT, never a terminal: it is heard even where a batch system ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gone = False

    def tell(event: dict[str, Any]) -> None:
        nonlocal gone
        if gone:
            return
        try:
            print(json.dumps(event), file=output, flush=True)
        except BrokenPipeError:
            # nobody listens any more: stop as after Ctrl-C, which keeps the checkpoint
            gone = True
            signal.raise_signal(signal.SIGINT)

    serve(sys.stdin.readline(), tell)


if __name__ == "__main__":
    main()
