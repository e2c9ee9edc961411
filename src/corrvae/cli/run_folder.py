"""The folder of a run: the model as `corrvae.load` reads it, the settings, the history, and what a stop leaves.

========================  ==================================================================
``run.toml``              the settings, resolved; it is there from the beginning
``history.csv``           every term at every evaluation, written as training goes
``checkpoint/``           what ``--resume`` goes on from; gone once the run is finished
``config.json`` and more  the model, finished or stopped
``run.next/``             the first three of a run that is to replace the one in the folder,
                          until its model is whole
========================  ==================================================================

One program at a time works on it: whoever begins or resumes a run holds the folder first (`corrvae.cli.holding`).
"""

import json
import re
import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, final

from corrvae.cli.holding import refuse_a_file
from corrvae.cli.settings import FOUND, SETTINGS, read_config, read_toml, to_toml
from corrvae.drafts import draft_of_file, make_folder, sync
from corrvae.errors import DamagedFolderError, DataFileError, FolderError

if TYPE_CHECKING:
    from corrvae import CorrelatedVAE

RUN, HISTORY, CHECKPOINT = "run.toml", "history.csv", "checkpoint"
LAUNCH = "launch"  # among what was found: the launch that began the run
_CODE = "code"  # beside what was found: the checksum of all that the file says
_CONFIG, _NEW, _MOVING, _NEXT, _SHARDS = "config.json", "model.new", "model.moving", "run.next", "features"
_MODEL = (_CONFIG, "model.safetensors", "arrays.safetensors", "vertices.parquet", "history.parquet")
_DRAFT = re.compile(r"\.model\.new\..*|\.(?:run\.toml|history\.csv)\.[0-9a-f]+\.part")
_OURS = re.compile("|".join(map(re.escape, (RUN, HISTORY, CHECKPOINT, _NEW, _MOVING, _NEXT, _SHARDS, *_MODEL))))
# What may change between a run and the run that goes on from it.
_FREE = ("threads", "checkpoint_every")


@final
@dataclass(frozen=True)
class KeptSettings:
    """A run's settings as they are on the disk.

    Attributes
    ----------
    place
        Their file.
    data
        What is in it.
    """

    place: Path
    data: bytes


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
    def work(self) -> Path:
        """Where the newest run is at work: the folder itself, or one in it while there is another run to replace."""
        beside = self.path / _NEXT
        return beside if (beside / RUN).is_file() else self.path

    @property
    def checkpoint(self) -> Path:
        """The folder of checkpoints."""
        return self.work / CHECKPOINT

    @property
    def history(self) -> Path:
        """The file of evaluations."""
        return self.work / HISTORY

    @property
    def is_begun(self) -> bool:
        """Whether there is a run, however far it came."""
        return (self.work / RUN).is_file()

    def refuse_to_begin(self, *, overwrite: bool) -> None:
        """Refuse a folder that cannot be written, or that holds anything but a run that may be overwritten.

        A run that left neither a model nor a checkpoint is no loss, and a new one takes its place unasked; not so
        settings that somebody wrote or changed. Nothing is touched before it is known that this is a run's folder; then
        it is settled.
        """
        # a draft alone is what a run leaves that was killed as it began
        found = self._listed()
        inside = found + (_but_drafts(self.path / _NEXT) if _NEXT in found else [])
        strangers = [name for name in inside if not _OURS.fullmatch(name)]
        if found and (RUN not in found or strangers):
            shown = ", ".join((strangers or found)[:5])
            raise FolderError(
                self.path, f"is not the folder of a run (it holds {shown}); nothing was written: choose another"
            )
        self.settle()
        if not overwrite and self._holds_what_counts():
            raise FolderError(self.path, "holds a run already; --resume goes on with it, --overwrite replaces it")
        if not overwrite and self.is_begun:
            self._refuse_settings_of_others()
        try:
            with TemporaryFile(dir=self.path):  # only trying tells
                pass
        except OSError as error:
            raise FolderError(self.path, f"cannot be written ({error.strerror or error})") from error

    def was_begun_by(self, launch: str | None) -> bool:
        """Say whether it was this launch of several processes that began the run in the folder."""
        return launch is not None and self.is_begun and self.found().get(LAUNCH) == launch

    def begin(self, settings: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Put the settings of a new run into the folder.

        A run that is there stays until the new one has a model; if it left neither a model nor a checkpoint, it goes,
        once there is room for the new file.
        """
        place = self.path / _NEXT if self._holds_what_counts() else self.path
        make_folder(place)
        before = [other for other in place.iterdir() if other.name != RUN]
        repeat = "# The settings of a run; corrvae fit --config with this file and --out repeats it.\n"
        told = f"\n# What was found, for a look and for --resume; it sets nothing.\n[{FOUND}]\n"
        try:
            with draft_of_file(place / RUN) as draft:
                sealed = {
                    **found,
                    _CODE: _code(settings, found),
                }  # at the end, so that a file that was cut off has none
                draft.write_text(repeat + to_toml(settings) + told + to_toml(sealed), encoding="utf-8")
                for other in before:
                    _remove(other)  # what was left of a draft is swept
        except BaseException:
            with suppress(OSError):  # one that holds something stays
                (self.path / _NEXT).rmdir()
            raise

    def abandon(self) -> None:
        """Remove a run that was refused before it made a step; one that it was to replace stays."""
        work = self.work
        if _names(work) == [RUN]:
            (work / RUN).unlink()
            if work != self.path:
                work.rmdir()

    def settings(self) -> dict[str, Any]:
        """Read the settings of the run that is there; a file that is not as it was written is refused."""
        self._refuse_to_resume()
        place = self.work / RUN
        given = read_config(place)
        settings = {name: given.get(name) for name in SETTINGS}
        if self._told().get(_CODE) != _code(settings, self.found()):
            raise DamagedFolderError(
                place,
                "has been changed or cut off since the run began, so the run cannot go on; put it back as it was, or "
                "begin another run",
            )
        return settings

    def found(self) -> dict[str, Any]:
        """Read what the run found in its files when it began."""
        return {name: value for name, value in self._told().items() if name != _CODE}

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
        """Say how the run's model came to be: "finished", "early" or "interrupted"; ``None`` if there is none yet.

        One that is damaged is none, with a warning, if there is a checkpoint from which the run can make it again.
        """
        if not (self.work / _CONFIG).exists():
            return None
        from corrvae.folders import load

        try:
            return load(self.work).stopped_
        except DamagedFolderError as error:
            if not any(name.startswith("step-") for name in _names(self.checkpoint)):
                raise
            warnings.warn(f"{error}; the run goes on from its last checkpoint, to a new model", stacklevel=2)
            return None

    def keep(self) -> KeptSettings:
        """Read the settings of the run at work, to `restore` them: who cleans up disks takes the oldest files first."""
        place = self.work / RUN
        return KeptSettings(place, place.read_bytes())

    def restore(self, kept: KeptSettings) -> None:
        """Put the settings back if they were removed while the run was at work: without them, it is none."""
        if not kept.place.is_file():
            with draft_of_file(kept.place) as draft:
                draft.write_bytes(kept.data)

    def finish(self, model: "CorrelatedVAE") -> None:
        """Put a model into the folder; what is left of a run that is over, or that this one replaces, is removed."""
        new = self.work / _NEW
        if new.exists():
            shutil.rmtree(new)
        model.save(new)
        self.settle()
        if new.exists():
            raise FolderError(new, f"the model is here, and not in its place: {self.path} has no {RUN} any more")
        if model.stopped_ != "interrupted":
            self.tidy()

    def tidy(self) -> None:
        """Remove what a run that is over does not need, also after one that was killed as it did so."""
        for place in (self.checkpoint, self.path / _NEW):
            shutil.rmtree(place, ignore_errors=True)

    def settle(self) -> None:
        """Put a model that is whole, with its run, into its place; where another program was killed at it, do the rest.

        ``config.json`` goes first and comes last: a folder that has one has the files that it lists. What is no folder
        of a run stays as it is, and so does what has the name of a model and is none.
        """
        if not self.is_begun:
            return
        work, moving = self.work, self.path / _MOVING
        if _is_model(work / _NEW):
            for name in (_MOVING, *_MODEL, _SHARDS, *((HISTORY, CHECKPOINT) if work != self.path else ())):
                _remove(self.path / name)
            (work / _NEW).rename(moving)  # nothing of it has moved before, and nothing that is there goes after
        if not moving.is_dir() or (_names(moving) and not _is_model(moving)):  # an empty one has been moved already
            return
        if (self.path / _NEXT).is_dir():
            for name in (HISTORY, CHECKPOINT, RUN):
                with suppress(FileNotFoundError):
                    (self.path / _NEXT / name).replace(self.path / name)
            shutil.rmtree(self.path / _NEXT)
        for place in sorted(moving.iterdir(), key=lambda place: place.name == _CONFIG):
            place.replace(self.path / place.name)
        moving.rmdir()
        sync(self.path)  # before that which could make it again goes

    def _told(self) -> dict[str, Any]:
        found = read_toml(self.work / RUN).get(FOUND)
        return found if isinstance(found, dict) else {}

    def _refuse_to_resume(self) -> None:
        if not self.is_begun:
            raise FolderError(self.path, f"there is no run to resume (no {RUN}); leave --resume out to begin one")

    def _refuse_settings_of_others(self) -> None:
        try:
            self.settings()
        except (DamagedFolderError, DataFileError) as error:
            raise FolderError(
                self.path,
                f"its {RUN} is not as a run wrote it; nothing was written: choose another folder, or let --overwrite "
                "replace it",
            ) from error

    def _holds_what_counts(self) -> bool:
        """Whether there is more than settings and a history: a model, or a checkpoint that is not just begun."""
        found = set(self._listed()) - {RUN, HISTORY}
        if all(name.endswith(".writing") for name in _names(self.path / CHECKPOINT)):
            found.discard(CHECKPOINT)
        return bool(found)

    def _listed(self) -> list[str]:
        refuse_a_file(self.path)
        return _but_drafts(self.path)


def _code(settings: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Give the checksum of what a run's file says, whatever the order and spelling."""
    said = [{name: value for name, value in part.items() if value is not None} for part in (settings, found)]
    return sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir()) if folder.is_dir() else []


def _but_drafts(folder: Path) -> list[str]:
    return [name for name in _names(folder) if not _DRAFT.fullmatch(name)]


def _is_model(place: Path) -> bool:
    if not place.is_dir() or place.is_symlink():
        return False
    from corrvae.answers.run import is_run_folder

    return is_run_folder(place)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _agree(given: Any, kept: Any) -> bool:
    """Whether a setting is the run's own, or leaves it to the run; of one with parts, each of them."""
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return all(map(_agree, given, kept))
    return given in ("auto", kept)


def _shown(value: Any) -> str:
    return "nothing" if value is None else to_toml({"": value}).removeprefix(" = ").strip()
