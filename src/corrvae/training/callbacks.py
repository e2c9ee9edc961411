"""Ready-made callbacks: a progress bar, a CSV file, TensorBoard.

A callback is a function of a `Progress`, called after every step. One that holds something open is a context manager
too; `train` enters and leaves it.
"""

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, final

from corrvae.drafts import draft_of_file
from corrvae.errors import DataFileError
from corrvae.regular import open_regular
from corrvae.training.history import Progress

Callback = Callable[[Progress], None]
_SECONDS_BETWEEN_LOOKS = 0.2


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Give callbacks as a tuple, and refuse what cannot be called.

    Examples
    --------
    >>> check_callbacks([print])
    (<built-in function print>,)
    """
    if not isinstance(callbacks, Iterable):
        advice = "; for a single one, pass a list of it" if callable(callbacks) else ""
        raise TypeError(f"callbacks must be a list of functions, got {callbacks!r}{advice}")
    listed = tuple(callbacks)
    for position, callback in enumerate(listed):
        if not callable(callback):
            raise TypeError(f"callbacks[{position}] is {callback!r}, which cannot be called with a step's progress")
    return listed


@final
class ProgressBar:
    """A bar on standard error with the epoch, the objective and the time left.

    Examples
    --------
    >>> with ProgressBar() as bar:
    ...     bar(Progress(step=1, max_steps=2, epoch=0.5, seconds=0.1, total=-3.0))
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0
        self._validation = ""

    def __enter__(self) -> "ProgressBar":
        self._validation = ""
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = None

    def __call__(self, progress: Progress) -> None:
        """Move the bar, a few times a second."""
        if self._bar is None:
            self._bar = _make_bar()
            self._bar.start()
            self._task = self._bar.add_task("training", total=progress.max_steps)
        elif progress.evaluation is None and progress.seconds - self._shown < _SECONDS_BETWEEN_LOOKS:
            return
        if progress.evaluation is not None and "validation_total" in progress.evaluation:
            self._validation = f", validation {progress.evaluation['validation_total']:.2f}"
        said = f"epoch {progress.epoch:.1f}, objective {progress.total:.2f}{self._validation}"
        self._shown = progress.seconds
        self._bar.update(self._task, completed=progress.step, description=said)


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Bar(*columns, console=Console(stderr=True), refresh_per_second=5)


@final
class CSVLog:
    """A CSV file with a row for each evaluation, written as it happens.

    A run that is resumed goes on with the file: rows of steps that it makes again are dropped, so that it leaves the
    file that an uninterrupted run would have left. A run that begins at its first step begins the file anew.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = CSVLog(f"{folder}/log.csv")
    ...     log(Progress(10, 20, 0.5, 0.1, -3.0, {"step": 10, "total": -3.5}))
    ...     Path(f"{folder}/log.csv").read_text().split()
    ['step,total', '10,-3.5']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._first: int | None = None  # the first step that was seen of this run
        self._begun = False

    def __enter__(self) -> "CSVLog":
        self._first, self._begun = None, False
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, progress: Progress) -> None:
        """Add a row if there was an evaluation."""
        self._first = progress.step if self._first is None else self._first
        if progress.evaluation is None:
            return
        if not (self._begun and self.path.exists()):  # it may have been removed meanwhile
            self._begin(list(progress.evaluation), self._first)
        with self.path.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerow(progress.evaluation.values())

    def _begin(self, names: list[str], step: int) -> None:
        kept: list[list[str]] = []
        if self.path.exists():
            found = _whole_rows(self.path)
            if found and found[0] != names:
                raise DataFileError(self.path, f"is not a log of such a run: its first line is not {','.join(names)}")
            kept = [row for row in found[1:] if len(row) == len(names) and row[0].isdecimal() and int(row[0]) < step]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of_file(self.path) as draft, draft.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([names, *kept])
        self._begun = True


@final
class TensorBoardLog:
    """Every term of every evaluation as a scalar for TensorBoard, which must be installed.

    Parameters
    ----------
    folder
        Where TensorBoard looks for it.

    Examples
    --------
    >>> TensorBoardLog("runs/first").folder.name
    'first'
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._writer: Any = None

    def __enter__(self) -> "TensorBoardLog":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def __call__(self, progress: Progress) -> None:
        """Add the scalars if there was an evaluation."""
        if progress.evaluation is None:
            return
        if self._writer is None:
            self._writer = _make_writer(self.folder, progress.step)
        for name, value in progress.evaluation.items():
            if name != "step":
                of_validation = name.startswith("validation_")
                tag = name.replace("_", "/", 1) if of_validation else f"training/{name}"
                self._writer.add_scalar(tag, value, progress.step)


def _whole_rows(path: Path) -> list[list[str]]:
    """Read the lines of a file that have an end: a full disk cuts the last one off."""
    try:
        with open_regular(path) as stream:
            text = stream.read().decode("utf-8")
        return list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(path, f"is not a log of a run ({error})") from error


def _make_writer(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("TensorBoardLog needs TensorBoard: pip install tensorboard") from error
    # What a run that was cut off logged after its last checkpoint is hidden.
    return SummaryWriter(str(folder), purge_step=step)
