"""How training goes: a bar on a terminal, a line now and then elsewhere, both with the terms of the objective."""

from collections.abc import Mapping
from typing import Any, final

from corrvae.experiments.progress import TextStream
from corrvae.training.callbacks import Callback
from corrvae.training.history import Progress

_SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_LOOKS = 5.0, 0.2
_TERMS = ("reconstruction", "singleton", "edge", "non_edge")


@final
class TermLines:
    """A line every few seconds, and one at the end.

    Parameters
    ----------
    stream
        Where lines go.

    Examples
    --------
    >>> import sys
    >>> TermLines(sys.stdout)(Progress(20, 20, 4.0, 9.0, -3.0, {"total": -3.5, "reconstruction": -2.5, "edge": -1.0}))
    step 20 of 20 (epoch 4.0): objective -3.50 (reconstruction -2.50, edge -1.00)
    """

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self._shown = 0.0
        self._begun: tuple[int, float] | None = None
        self._terms: Mapping[str, float] | None = None

    def __call__(self, progress: Progress) -> None:
        """Write a line if it is time to."""
        self._terms = progress.evaluation or self._terms
        if self._begun is None:  # a run that is resumed has made steps before
            self._begun, self._shown = (progress.step - 1, progress.seconds), progress.seconds
        last = progress.step == progress.max_steps
        if not last and progress.seconds - self._shown < _SECONDS_BETWEEN_LINES:
            return
        self._shown = progress.seconds
        left = "" if last else f", {_time_left(progress, *self._begun)} left"
        where = f"step {progress.step:,} of {progress.max_steps:,} (epoch {progress.epoch:.1f})"
        print(f"{where}: {describe(progress.total, self._terms)}{left}", file=self._stream, flush=True)


@final
class TermBar:
    """A bar with the objective, its terms at the last evaluation, and the time left.

    Parameters
    ----------
    stream
        A terminal.
    """

    def __init__(self, stream: TextStream) -> None:
        self._stream: Any = stream
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0
        self._terms: Mapping[str, float] | None = None

    def __enter__(self) -> "TermBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = None

    def __call__(self, progress: Progress) -> None:
        """Move the bar, a few times a second."""
        self._terms = progress.evaluation or self._terms
        if self._bar is None:
            self._bar = _make_bar(self._stream)
            self._bar.start()
            self._task = self._bar.add_task("training", total=progress.max_steps, completed=progress.step)
        elif progress.step < progress.max_steps and progress.seconds - self._shown < _SECONDS_BETWEEN_LOOKS:
            return
        self._shown = progress.seconds
        said = f"epoch {progress.epoch:.1f}, {describe(progress.total, self._terms)}"
        self._bar.update(self._task, completed=progress.step, description=said)


def choose_progress(stream: TextStream, *, quiet: bool) -> list[Callback]:
    """Give what shows progress on a stream: nothing, a bar or lines.

    Examples
    --------
    >>> import io
    >>> choose_progress(io.StringIO(), quiet=True)
    []
    """
    if quiet:
        return []
    return [TermBar(stream) if stream.isatty() else TermLines(stream)]


def describe(total: float, terms: Mapping[str, float] | None) -> str:
    """Tell the objective, with its terms once these are known.

    Examples
    --------
    >>> describe(-2.0, None)
    'objective -2.00'
    """
    if terms is None:
        return f"objective {total:.2f}"
    shown = ", ".join(f"{name.replace('_', '-')} {terms[name]:.2f}" for name in _TERMS if terms.get(name))
    said = f"objective {terms['total']:.2f} ({shown})"
    return f"{said}, validation {terms['validation_total']:.2f}" if "validation_total" in terms else said


def _time_left(progress: Progress, first_step: int, first_seconds: float) -> str:
    pace = (progress.seconds - first_seconds) / max(1, progress.step - first_step)
    seconds = pace * (progress.max_steps - progress.step)
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds:.0f} s"


def _make_bar(stream: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    # the terms come last, so that a narrow terminal cuts these short and not the time left
    terms = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), terms)
    return Bar(*columns, console=Console(file=stream), refresh_per_second=5, expand=True)
