"""SIGTERM as a request to stop, in the way that Ctrl-C is one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def heed_termination() -> Iterator[None]:
    """Answer SIGTERM as Ctrl-C is answered inside: training finishes its step and stops, all else ends at once.

    A batch system asks jobs to end by SIGTERM, and often runs them where Ctrl-C is ignored; there it stays ignored.

    Examples
    --------
    >>> with heed_termination():
    ...     try:
    ...         signal.raise_signal(signal.SIGTERM)
    ...     except KeyboardInterrupt:
    ...         print("asked to stop")
    asked to stop
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    blocks = before == signal.SIG_IGN and hasattr(signal, "pthread_sigmask")
    if blocks:
        # Training listens only where Ctrl-C is heard at all: it is made to listen, and Ctrl-C kept from arriving.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    terminate = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if terminate is None else terminate)
        if blocks:
            signal.signal(signal.SIGINT, before)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _interrupt(_: int, frame: Any) -> None:
    answer = signal.getsignal(signal.SIGINT)
    if callable(answer):
        answer(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt
