"""Ready-made callbacks: a progress bar, a CSV file, TensorBoard.

A callback is a function of a `Progress`, called after every step. One that holds something open is a context manager
too; training enters and leaves it.
"""

import csv
import os
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from corrvae.training.history import Progress

if TYPE_CHECKING:
    from corrvae.training.loop import Run

_SECONDS_BETWEEN_UPDATES = 0.2


@final
class ProgressBar:
    """A bar on standard error with the epoch, the objective and the time left."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0
        self._validation = ""

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._validation = None, ""

    def __call__(self, progress: Progress) -> None:
        """Move the bar, a few times a second."""
        if self._bar is None:
            self._bar = _make_bar()
            self._bar.start()
            self._task = self._bar.add_task("training", total=progress.max_steps)
        elif progress.evaluation is None and progress.seconds - self._shown < _SECONDS_BETWEEN_UPDATES:
            return
        if progress.evaluation is not None and "validation_total" in progress.evaluation:
            self._validation = f", validation {progress.evaluation['validation_total']:.2f}"
        description = f"epoch {progress.epoch:.1f}, objective {progress.total:.2f}{self._validation}"
        self._shown = progress.seconds
        self._bar.update(self._task, completed=progress.step, description=description)


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=5,
    )


@final
class CSVLog:
    """A CSV file of the history, with a row for each evaluation; it is written anew after each."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def start(self, run: "Run") -> None:
        """Receive the run whose history is written: after it has been resumed, the rows before too."""
        self._run = run

    def __call__(self, progress: Progress) -> None:
        """Write the history if there was an evaluation."""
        if progress.evaluation is None:
            return
        columns = self._run.history.columns
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([columns, *zip_longest(*columns.values(), fillvalue="")])


@final
class TensorBoardLog:
    """Every term of every evaluation as a scalar for TensorBoard, which must be installed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
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
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise ImportError("TensorBoardLog needs TensorBoard: pip install tensorboard") from error
            # Hides what an interrupted run logged after its last checkpoint.
            self._writer = SummaryWriter(str(self.folder), purge_step=progress.step)
        for name, value in progress.evaluation.items():
            if name != "step":
                of_validation = name.startswith("validation_")
                tag = name.replace("_", "/", 1) if of_validation else f"training/{name}"
                self._writer.add_scalar(tag, value, progress.step)
