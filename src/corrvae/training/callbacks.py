"""Ready-made callbacks: a progress bar and a CSV file.

A callback is a function of a `Progress`, called after every step. One that holds something open is a context manager
too; training enters and leaves it.
"""

import csv
import os
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, final

from corrvae.training.history import Progress

if TYPE_CHECKING:
    from corrvae.training.loop import Run


@final
class ProgressBar:
    """A bar on standard error with the epoch, the objective and the time left."""

    def __enter__(self) -> "ProgressBar":
        from rich.console import Console
        from rich.progress import MofNCompleteColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(*Bar.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True))
        self._bar.start()
        self._task, self._validation = self._bar.add_task("training", total=None), ""
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Move the bar."""
        if progress.evaluation is not None and "validation_total" in progress.evaluation:
            self._validation = f", validation {progress.evaluation['validation_total']:.2f}"
        description = f"epoch {progress.epoch:.1f}, objective {progress.total:.2f}{self._validation}"
        self._bar.update(self._task, total=progress.max_steps, completed=progress.step, description=description)


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
