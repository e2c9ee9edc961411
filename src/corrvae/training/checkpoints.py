"""Checkpoints: the state of a run as a folder, written now and then, resumed to the same bits."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, final

from corrvae.errors import FolderError
from corrvae.io.folder import CONFIG, Folder, read_folder, write_folder
from corrvae.training.history import Progress

if TYPE_CHECKING:
    from corrvae.training.loop import Run

_KIND, _VERSION = "corrvae checkpoint", 1


@final
class Checkpoint:
    """A callback that saves the state of training to a folder, and resumes from it.

    If the folder holds a checkpoint of the same fit (data, parameters and seed), training resumes from it, and on a CPU
    ends in the same bits as if it had not stopped. The fit needs an integer `random_state`.

    It saves after so many steps or minutes, every ten minutes if neither is given, and after the last step.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, steps: int | None = None, minutes: float | None = None
    ) -> None:
        for name, value in (("steps", steps), ("minutes", minutes)):
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        self.folder = Path(folder)
        self.steps = steps
        self.minutes = 10.0 if steps is None and minutes is None else minutes
        self._saved = time.monotonic()
        self._run: Run | None = None

    def start(self, run: "Run") -> None:
        """Resume the run if the folder holds a checkpoint of it."""
        self._run = run
        self._saved = time.monotonic()
        found = run.workers.from_main(self._read)
        if found is None:
            return
        if found.document.get("identity") != run.identity:
            raise FolderError(
                self.folder,
                "it holds a checkpoint of another fit (other data, parameters or seed); remove it or choose another",
            )
        try:
            run.restore(found.document, found.tensors)
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
            found = str(error).partition("\n")[0]
            raise FolderError(self.folder, f"damaged: it is not a whole checkpoint ({found}); remove it") from error
        run.checkpoint = self.folder

    def _read(self) -> Folder | None:
        if not (self.folder / CONFIG).exists():
            return None
        return read_folder(self.folder, kind=_KIND, version=_VERSION)

    def __call__(self, progress: Progress) -> None:
        """Save if it is time to, or the run is over."""
        due = self.steps is not None and progress.step % self.steps == 0
        due = due or (self.minutes is not None and time.monotonic() - self._saved >= 60.0 * self.minutes)
        if due or progress.stopped is not None:
            self.save()

    def save(self) -> None:
        """Write the state of the run."""
        run = self._run
        if run is None:
            return
        run.check_weights()
        document, tensors = run.state()
        document["identity"] = run.identity
        write_folder(self.folder, kind=_KIND, version=_VERSION, document=document, tensors=tensors)
        run.checkpoint = self.folder
        self._saved = time.monotonic()
