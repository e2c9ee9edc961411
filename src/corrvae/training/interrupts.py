"""Ctrl-C as a request, so that a step is not torn in two."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final


@final
class Interrupt:
    """Whether Ctrl-C was pressed.

    Attributes
    ----------
    asked : bool
        True once it was.
    """

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def listen_for_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a flag; a second one interrupts as it always does.

    Signals reach a program's main thread only: in any other, the flag stays down. So it does where Ctrl-C is ignored,
    as in a job that a shell runs in the background.

    Examples
    --------
    >>> with listen_for_interrupt() as interrupt:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupt.asked
    True
    """
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield interrupt
        return

    def ask(*_: object) -> None:
        interrupt.asked = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
