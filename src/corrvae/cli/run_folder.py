"""The folder of a run: the model as `corrvae.load` reads it, the settings, the history, and what a stop leaves.

========================  ==================================================================
``run.toml``              the settings, resolved; it is there from the beginning
``history.csv``           every term at every evaluation, written as training goes
``checkpoint/``           what ``--resume`` goes on from; gone once the run is finished
``config.json`` and more  the model, finished or stopped
========================  ==================================================================
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, final

from corrvae.cli.settings import FOUND, SETTINGS, read_config, read_toml, to_toml
from corrvae.drafts import draft_of_file, sync, take_folder
from corrvae.errors import FolderError

if TYPE_CHECKING:
    from corrvae import CorrelatedVAE

RUN, HISTORY, CHECKPOINT = "run.toml", "history.csv", "checkpoint"
LAUNCH = "launch"  # among what was found: the launch that began the run
_CONFIG, _NEW, _SHARDS = "config.json", "model.new", "features"
_MODEL = (_CONFIG, "model.safetensors", "arrays.safetensors", "vertices.parquet", "history.parquet")
_DRAFT = re.compile(r"\.model\.new\..*|\.(?:run\.toml|history\.csv)\.[0-9a-f]+\.part")
_OURS = re.compile("|".join(map(re.escape, (RUN, HISTORY, CHECKPOINT, _NEW, _SHARDS, *_MODEL))))
# What may change between a run and the run that goes on from it.
_FREE = ("threads", "checkpoint_every")


@final
class RunFolder:
    """A run's folder.

    Parameters
    ----------
    path
        Where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoint(self) -> Path:
        """The folder of checkpoints."""
        return self.path / CHECKPOINT

    @property
    def history(self) -> Path:
        """The file of evaluations."""
        return self.path / HISTORY

    def refuse_to_begin(self, *, overwrite: bool) -> None:
        """Refuse a folder that cannot be written, or that holds anything but a run that may be overwritten.

        A run that left neither a model nor a checkpoint is no loss, and a new one takes its place unasked, unless
        another program is at work on it.
        """
        # a draft alone is what a run leaves that was killed as it began
        found = [name for name in self._listed() if not _DRAFT.fullmatch(name)]
        if not found:
            self._try_to_write()
            return
        strangers = [name for name in found if not _OURS.fullmatch(name)]
        if RUN not in found or strangers:
            shown = ", ".join((strangers or found)[:5])
            raise FolderError(
                self.path, f"is not the folder of a run (it holds {shown}); nothing was written: choose another"
            )
        if not overwrite and not set(found) <= {RUN, HISTORY}:
            raise FolderError(self.path, "holds a run already; --resume goes on with it, --overwrite replaces it")
        if not overwrite and self._is_held():
            raise FolderError(self.path, "another program is training here; choose another folder, or wait for its end")
        self._try_to_write()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let other programs see that this one is at work here, where the system can show it."""
        try:
            lock = take_folder(self.path)
        except BlockingIOError:
            lock = None
        try:
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def was_begun_by(self, launch: str | None) -> bool:
        """Say whether it was this launch of several processes that began the run in the folder."""
        return launch is not None and (self.path / RUN).is_file() and self.found().get(LAUNCH) == launch

    def begin(self, settings: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Make the folder with the settings in it; a run that was there goes, once there is room for the new file."""
        before = [name for name in self._listed() if name != RUN]
        self.path.mkdir(parents=True, exist_ok=True)
        repeat = "# The settings of a run; corrvae fit --config with this file and --out repeats it.\n"
        told = f"\n# What was found, for a look and for --resume; it sets nothing.\n[{FOUND}]\n"
        with draft_of_file(self.path / RUN) as draft:
            draft.write_text(repeat + to_toml(settings) + told + to_toml(found), encoding="utf-8")
            for place in (self.path / name for name in before if name != draft.name):
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                else:
                    place.unlink(missing_ok=True)  # what was left of a draft is swept

    def abandon(self) -> None:
        """Remove the folder of a run that was refused before it made a step."""
        if self._listed() == [RUN]:
            (self.path / RUN).unlink()
            self.path.rmdir()

    def settings(self) -> dict[str, Any]:
        """Read the settings of the run that is there."""
        self._refuse_to_resume()
        settings = read_config(self.path / RUN)
        return {name: settings.get(name) for name in SETTINGS}

    def found(self) -> dict[str, Any]:
        """Read what the run found in its files when it began."""
        found = read_toml(self.path / RUN).get(FOUND)
        return found if isinstance(found, dict) else {}

    def check_unchanged(self, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Refuse to go on under settings other than the run's own.

        Parameters
        ----------
        kept
            The run's settings.
        given
            Those that the caller gave, as `corrvae.cli.settings.resolve` leaves them.
        """
        for name, value in given.items():
            if name not in _FREE and not _agree(value, kept[name]):
                raise FolderError(
                    self.path,
                    f"this run has {name} = {_shown(kept[name])}, not {_shown(value)}, and cannot go on otherwise; "
                    "leave the setting out to go on, or begin another run",
                )

    def stopped(self) -> str | None:
        """Say how the run's model came to be: "finished", "early" or "interrupted"; ``None`` if there is none yet."""
        if not (self.path / _CONFIG).exists():
            return None
        from corrvae.folders import load

        return load(self.path).stopped_

    def finish(self, model: "CorrelatedVAE") -> None:
        """Put a model into the folder; what is left of a run that is over is removed.

        ``config.json`` goes first and comes last: a folder that has one has the files that it lists.
        """
        new = self.path / _NEW
        if new.exists():
            shutil.rmtree(new)
        model.save(new)
        (self.path / _CONFIG).unlink(missing_ok=True)
        for name in _MODEL:
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.path / _SHARDS, ignore_errors=True)
        for place in sorted(new.iterdir(), key=lambda place: place.name == _CONFIG):
            place.replace(self.path / place.name)
        new.rmdir()
        sync(self.path)  # before that which could make it again goes
        if model.stopped_ != "interrupted":
            self.tidy()

    def tidy(self) -> None:
        """Remove what a run that is over does not need, also after one that was killed as it did so."""
        for place in (self.checkpoint, self.path / _NEW):
            shutil.rmtree(place, ignore_errors=True)

    def _refuse_to_resume(self) -> None:
        if not (self.path / RUN).is_file():
            raise FolderError(self.path, f"there is no run to resume (no {RUN}); leave --resume out to begin one")

    def _is_held(self) -> bool:
        try:
            lock = take_folder(self.path)
        except BlockingIOError:
            return True
        if lock is not None:
            os.close(lock)
        return False

    def _try_to_write(self) -> None:
        """Refuse a folder that cannot be made or written; only trying tells, and what was made for it goes again."""
        made: list[Path] = []
        try:
            for folder in reversed((self.path, *self.path.parents)):
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
            with TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise FolderError(self.path, f"cannot be written ({error.strerror or error})") from error
        finally:
            for folder in reversed(made):
                with suppress(OSError):  # another program may have put something there
                    folder.rmdir()

    def _listed(self) -> list[str]:
        if not self.path.exists() and not self.path.is_symlink():
            return []
        if not self.path.is_dir():
            raise FolderError(self.path, "there is a file of this name; choose another")
        return sorted(place.name for place in self.path.iterdir())


def _agree(given: Any, kept: Any) -> bool:
    """Whether a setting is the run's own, or leaves it to the run; of one with parts, each of them."""
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return all(map(_agree, given, kept))
    return given in ("auto", kept)


def _shown(value: Any) -> str:
    return "nothing" if value is None else to_toml({"": value}).removeprefix(" = ").strip()
