"""Run long work on a worker thread while the main thread shows progress and reacts to Ctrl-C.

Compiled kernels cannot be interrupted by Python. They share two integers with a `Monitor` instead: one that asks them
to stop, one that counts what they have done. `watch` polls the counter and sets the flag.
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar, final

import numpy as np

STOP, DONE = 0, 1

_POLL_SECONDS = 0.05
_SHOW_AFTER_SECONDS = 2.0
_Result = TypeVar("_Result")


class Cancelled(Exception):  # noqa: N818
    """Raised inside the worker thread when it has been asked to stop."""


@final
class Monitor:
    """What a worker thread is doing.

    ``control[STOP]`` is set to 1 to ask for an early return; ``control[DONE]`` counts the work of this phase.
    """

    def __init__(self) -> None:
        self.control = np.zeros(2, np.int64)
        self.label = ""
        self.total: int | None = None

    def phase(self, label: str, total: int | None = None) -> None:
        """Begin a phase of `total` units of work; None if it cannot be counted."""
        self.check()
        self.control[DONE] = 0
        self.label, self.total = label, total

    def check(self) -> None:
        """Raise `Cancelled` if a stop has been asked for: what kernels returned since then is incomplete."""
        if self.control[STOP]:
            raise Cancelled


def watch(work: Callable[[Monitor], _Result], *, progress: bool | None = None) -> _Result:
    """Call ``work(monitor)`` on a worker thread; return its result or raise its error.

    The work passes ``monitor.control`` to its kernels and calls ``monitor.phase`` as it proceeds. A bar is shown once
    two seconds have passed; with progress None only when standard error is a terminal.
    """
    monitor = Monitor()
    outcome: Future[_Result] = Future()

    def target() -> None:
        try:
            outcome.set_result(work(monitor))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=target, daemon=True)
    show = sys.stderr.isatty() if progress is None else progress
    with ExitStack() as stack:
        begun = time.monotonic()
        update: Callable[[], None] | None = None
        try:
            thread.start()  # in here, because Ctrl-C may come before it returns
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                if update is not None:
                    update()
                elif show and time.monotonic() - begun > _SHOW_AFTER_SECONDS:
                    update = _progress_bar(monitor, stack)
        except KeyboardInterrupt:
            monitor.control[STOP] = 1
            if thread.is_alive():
                thread.join(1.0)
            raise
    return outcome.result()


def _progress_bar(monitor: Monitor, stack: ExitStack) -> Callable[[], None]:
    from rich.console import Console
    from rich.progress import Progress

    bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
    shown, task = monitor.label, bar.add_task(monitor.label, total=monitor.total)

    def update() -> None:
        nonlocal shown, task
        if monitor.label != shown:
            bar.remove_task(task)
            shown, task = monitor.label, bar.add_task(monitor.label, total=monitor.total)
        bar.update(task, completed=int(monitor.control[DONE]))

    return update
