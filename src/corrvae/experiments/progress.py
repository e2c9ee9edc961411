"""Tell how a list of runs goes: a moving bar on a terminal, plain lines elsewhere."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Protocol, final, runtime_checkable


@runtime_checkable
class TextStream(Protocol):
    """What of a text file is needed to write to it; standard error that tests have replaced is often no more."""

    def write(self, text: str, /) -> Any:
        """Write a text."""

    def flush(self) -> Any:
        """Hand over what was written."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


class Display(ABC):
    """Shows runs, one after the other. A context manager."""

    @abstractmethod
    def begin(self, title: str, number: int, count: int) -> None:
        """Begin a run, the `number`-th of `count`."""

    @abstractmethod
    def advance(self, doing: str, done: int, total: int | None) -> None:
        """Say what is being done, and how much of it is done."""

    @abstractmethod
    def say(self, sentence: str) -> None:
        """Write a line that stays."""

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


@final
class Lines(Display):
    """A line for whatever is begun.

    Examples
    --------
    >>> import sys
    >>> with Lines(sys.stdout) as display:
    ...     display.begin("CVAE_ind, seed 0", 2, 3)
    ...     display.advance("training", 1, 3000)
    ...     display.advance("training", 2, 3000)
    CVAE_ind, seed 0 (2 of 3)
      training (3,000 steps)
    """

    def __init__(self, stream: TextStream) -> None:
        self._stream, self._doing = stream, ""

    def begin(self, title: str, number: int, count: int) -> None:
        """See `Display.begin`."""
        self._doing = ""
        self.say(f"{title} ({number} of {count})")

    def advance(self, doing: str, done: int, total: int | None) -> None:
        """See `Display.advance`."""
        if doing != self._doing:
            self._doing = doing
            self.say(f"  {doing}" + ("" if total is None else f" ({total:,} steps)"))

    def say(self, sentence: str) -> None:
        """See `Display.say`."""
        print(sentence, file=self._stream, flush=True)


@final
class Bar(Display):
    """A bar for the run that is going on, and a line for each that is over.

    Parameters
    ----------
    stream
        A terminal.
    """

    def __init__(self, stream: TextStream) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        terminal: Any = stream
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(file=terminal), transient=True, refresh_per_second=5)
        self._task: Any = None
        self._title = ""

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, title: str, number: int, count: int) -> None:
        """See `Display.begin`."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._title = f"{title} ({number} of {count})"
        self._task = self._bar.add_task(self._title, total=None)

    def advance(self, doing: str, done: int, total: int | None) -> None:
        """See `Display.advance`."""
        self._bar.update(self._task, description=f"{self._title}: {doing}", completed=done, total=total)

    def say(self, sentence: str) -> None:
        """See `Display.say`."""
        self._bar.console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def choose_display(stream: TextStream) -> Display:
    """Give a bar for a terminal, and lines for anything else.

    Examples
    --------
    >>> import io
    >>> isinstance(choose_display(io.StringIO()), Lines)
    True
    """
    return Bar(stream) if stream.isatty() else Lines(stream)
