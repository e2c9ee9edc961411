"""SIGTERM as a request to stop, in the way that Ctrl-C is one; and how one of several processes takes either."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final


@contextmanager
def heed_termination() -> Iterator[None]:
    """Answer SIGTERM as Ctrl-C is answered inside: training finishes its step and stops, all else ends at once.

    A batch system asks jobs to end by SIGTERM, and often runs them where Ctrl-C is ignored; there it stays ignored, if
    this is entered before other threads begin: one that began before, such as importing NumPy begins some, hears it.
    Under the launcher of several processes SIGTERM is not answered any more once all is done: when one process ends,
    the launcher sends it to the others, which are about to end with a code and a word of their own.

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
        from corrvae.ranks import is_launched  # not before, because it imports NumPy

        after = signal.SIG_DFL if terminate is None else terminate
        signal.signal(signal.SIGTERM, signal.SIG_IGN if is_launched() else after)
        if blocks:
            signal.signal(signal.SIGINT, before)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@final
class OneRequest:
    """A callback for training in several processes: from the first step on, signals are requests and nothing more.

    All processes are asked to stop, but not at one moment: a request may come after the step at which the others' made
    all of them stop, and must not tear what is being written then. If it takes too long, the launcher kills.

    Attributes
    ----------
    on_every_rank : bool
        True: `corrvae.training.train` calls it on every rank.
    """

    on_every_rank = True

    def __enter__(self) -> "OneRequest":
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, _let_pass)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it so: the model is still to be written."""

    def __call__(self, progress: object) -> None:
        """Do nothing after a step."""


@final
class LateRequest:
    """A callback for training in one process: the first signal that comes too late for it is noted, and a second heard.

    That is one during the last step, as its checkpoint is written, or after it. What was learned is still to be written
    then, and must not be torn.

    Attributes
    ----------
    asked : bool
        Whether there was one.

    Examples
    --------
    >>> late = LateRequest()
    >>> with late.heeded():
    ...     with late:
    ...         pass  # training
    ...     signal.raise_signal(signal.SIGINT)
    >>> late.asked
    True
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> "LateRequest":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Listen from now on, if training came to its end; not if there was a signal: the next one is the second."""
        before = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if kind is None and not self.asked and is_main and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._note)

    def __call__(self, progress: object) -> None:
        """Do nothing after a step."""

    def asked_late(self) -> None:
        """Note a signal that training heard and had no step left to stop before."""
        self.asked = True

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Listen no longer than inside."""
        try:
            yield
        finally:
            self._forget()

    def insist(self) -> None:
        """Take the next signal as a second one, because training ended at the first; it may have come already."""
        self._forget()
        if self.asked:
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self.asked = True
        self._forget()

    def _forget(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


def _let_pass(*_: object) -> None:
    """Answer a signal by nothing; training listens over this."""


def _interrupt(_: int, frame: Any) -> None:
    answer = signal.getsignal(signal.SIGINT)
    if callable(answer):
        answer(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt
