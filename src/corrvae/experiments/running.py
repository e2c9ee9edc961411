"""Run jobs one after the other, each in a process of its own, and skip those that are finished."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import final

from corrvae.errors import CorrvaeError
from corrvae.experiments.jobs import Job
from corrvae.experiments.outcomes import Report
from corrvae.experiments.progress import Display
from corrvae.experiments.published import TASKS
from corrvae.experiments.records import Record, read_record

# Runs a job, leaves its record, and reports how it goes.
Start = Callable[[Job, Report], None]

# What an interrupted run may take to finish its step and to write its checkpoint.
_SECONDS_TO_STOP = 60.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class RunError(CorrvaeError):
    """A run that failed."""


@final
@dataclass
class Tally:
    """How a list of jobs went.

    Attributes
    ----------
    records
        Of all jobs that are finished, now or before.
    skipped
        How many were finished before.
    failures
        Jobs that failed, with the reason.
    """

    records: list[Record] = field(default_factory=list)
    skipped: int = 0
    failures: list[tuple[Job, str]] = field(default_factory=list)


def run_jobs(jobs: Iterable[Job], display: Display, start: Start, after: Callable[[], object] | None = None) -> Tally:
    """Run what is not finished yet; what fails is said, and the others go on.

    Parameters
    ----------
    jobs
        The jobs.
    display
        Shows how it goes.
    start
        Runs one of them: `in_own_process`, or `corrvae.experiments.worker.perform` to stay in this one.
    after
        Called after each run that finished, to write the tables anew.
    """
    jobs, tally = list(jobs), Tally()
    before = [job.finished() for job in jobs]  # all of them first: what is wrong with one should not come late
    for number, (job, record) in enumerate(zip(jobs, before, strict=True), 1):
        if record is not None:
            display.say(f"{job.title}: finished before ({_said(record)})")
            tally.records.append(record)
            tally.skipped += 1
            continue
        display.begin(job.title, number, len(jobs))
        try:
            start(job, display.advance)
        except (CorrvaeError, ValueError, ImportError) as error:
            display.say(f"{job.title}: failed: {error}")
            tally.failures.append((job, str(error)))
            continue
        record = read_record(job.path)
        tally.records.append(record)
        display.say(f"{job.title}: {_said(record)}, {record.seconds:.0f} s, {record.peak_megabytes:,.0f} MB")
        if after is not None:
            after()
    return tally


def in_own_process(threads: int | None = None, executable: str = sys.executable) -> Start:
    """Give a way to run jobs in processes of their own.

    Ctrl-C is passed on once, so that training finishes its step and writes its checkpoint.

    Parameters
    ----------
    threads
        How many each may use; ``None``: what the libraries choose.
    executable
        The Python to run.
    """
    environment = dict(os.environ)
    if threads is not None:
        environment |= dict.fromkeys(_THREAD_VARIABLES, str(threads))

    def start(job: Job, report: Report) -> None:
        process = subprocess.Popen(
            [executable, "-P", "-m", "corrvae.experiments.worker"],  # -P: the user's folder may hold a numpy.py
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            start_new_session=True,  # a terminal sends Ctrl-C to everyone in a session: twice would be once too often
        )
        try:
            _follow(process, job, report)
        except KeyboardInterrupt:
            _stop(process)
            raise
        finally:
            if process.poll() is None:
                process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()

    return start


def _follow(process: subprocess.Popen[str], job: Job, report: Report) -> None:
    if process.stdin is None or process.stdout is None:
        raise RunError("its process has no pipes")
    try:
        process.stdin.write(job.to_json() + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it has ended already, which is told below
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "progress":
            report(event["doing"], event["done"], event["total"])
        elif event["event"] == "done":
            return
        elif event["event"] == "interrupted":
            raise KeyboardInterrupt
        else:
            raise RunError(event["problem"])
    code = process.wait()
    if code < 0:
        name = signal.Signals(-code).name
        raise RunError(f"its process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else ""))
    raise RunError(f"its process ended with code {code} and said nothing")


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
    try:
        process.communicate(timeout=_SECONDS_TO_STOP)
    except (subprocess.TimeoutExpired, ValueError, OSError):
        process.kill()


def _said(record: Record) -> str:
    task = TASKS[record.task]
    return f"{task.metric_name} {record.scores[task.metric]:.4f}"
