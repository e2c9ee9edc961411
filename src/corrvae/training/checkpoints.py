"""Checkpoints: folders, one for each step at which one was written, of which the newest two are kept."""

import hashlib
import os
import re
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from corrvae.drafts import discard, sweep
from corrvae.errors import DamagedFolderError, FolderError
from corrvae.model import CorrelatedModel
from corrvae.nn.prior import LearnedTau
from corrvae.nn.rows import SparseRows
from corrvae.persistence import DOCUMENT, Folder, read_folder, write_folder
from corrvae.regular import check_inside, told_as_unreadable
from corrvae.training.data import TrainingData
from corrvae.training.settings import TrainingSettings

KIND, VERSION = "corrvae checkpoint", 1
_STEP = re.compile(r"step-(\d{9,})")
_DRAFT = re.compile(r"\.(step-\d{9,})\.[0-9a-f]{8}\.(?:writing|old)")
_HASHED_ROWS, _KEPT = 4096, 2
# What may differ between the run that wrote a checkpoint and the run that goes on from it.
_FREE = ("max_steps", "checkpoint", "checkpoint_steps", "checkpoint_minutes", "resume")


@final
class CheckpointFolder:
    """Where a run's checkpoints are.

    A checkpoint is a folder ``step-000001000`` within this one. It appears all at once; the one before it stays, and
    those before that go. If the newest is found damaged, the one before it is taken up, with a warning.

    Parameters
    ----------
    path
        The folder; made when the first checkpoint is written.
    run
        What the run is, as JSON (see `describe_run`): a checkpoint of another run is refused.
    """

    def __init__(self, path: Path, run: Mapping[str, Any]) -> None:
        self.path = path
        self.run = dict(run)

    def latest(self) -> Path | None:
        """Give the newest checkpoint's folder."""
        found = self._steps()
        return found[max(found)] if found else None

    def write(self, step: int, document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Path:
        """Write a checkpoint, then remove those before the one that came before it."""
        place = self.path / f"step-{step:09d}"
        if os.path.lexists(place):
            check_inside(place)
        write_folder(
            place, kind=KIND, version=VERSION, document={**document, "run": self.run, "step": step}, tensors=tensors
        )
        self._prune(step)
        return place

    def read(self) -> Folder | None:
        """Read the newest whole checkpoint; ``None`` if there is none.

        Raises
        ------
        DamagedFolderError
            If the newest is damaged and there is no whole one before it.
        FolderError
            If it belongs to another run or was written by a newer corrvae, or if one cannot be read: then nothing is
            touched, since what is in it may be needed.
        """
        self._sweep()
        steps = self._steps()
        damage: list[DamagedFolderError] = []
        for step in sorted(steps, reverse=True):
            place = steps[step]
            try:
                check_inside(place)
                _refuse_without_document(place)
                found = read_folder(place, kind=KIND, newest=VERSION)
            except DamagedFolderError as error:
                damage.append(error)
                continue
            except FolderError:
                if os.path.lexists(place):
                    raise
                return self.read()  # another process has written later ones meanwhile
            self._check_run(place, found)
            for error in damage:
                warnings.warn(f"{error}; training goes on from {place.name} before it", stacklevel=2)
            self._set_aside([steps[later] for later in steps if later > step])
            self._prune(step)
            return found
        if damage:
            raise damage[0]
        return None

    def _check_run(self, place: Path, found: Folder) -> None:
        was = found.document.get("run")
        if not isinstance(was, dict):
            raise FolderError(place, "damaged: it does not say which run it belongs to")
        for name, value in self.run.items():
            if was.get(name) != value:
                raise FolderError(
                    place,
                    f"this checkpoint belongs to another run: its {name} is {was.get(name)!r}, this run's is "
                    f"{value!r}; give another folder, or remove this one",
                )

    def clear(self) -> None:
        """Remove the checkpoints of a run before; what has the name of one and no document only gives way."""
        steps = self._steps().values()
        for place in filter(_has_document, steps):
            discard(place)
        self._set_aside([place for place in steps if _is_filled(place)])

    def _prune(self, step: int) -> None:
        """Remove all before this one but the last of them; not those after it, which another process has written."""
        steps = {made: place for made, place in self._steps().items() if _has_document(place)}
        for made in sorted(made for made in steps if made < step)[: 1 - _KEPT]:
            discard(steps[made])

    def _set_aside(self, damaged: list[Path]) -> None:
        """Give damaged checkpoints another name: the run will write its own of these steps."""
        with told_as_unreadable(self.path):
            self._rename(damaged)

    def _rename(self, damaged: list[Path]) -> None:
        for place in damaged:
            place.rename(place.with_name(f"damaged-{place.name}-{time.time_ns()}"))

    def _steps(self) -> dict[int, Path]:
        matches = ((place, _STEP.fullmatch(place.name)) for place in self._places())
        return {int(match[1]): place for place, match in matches if match and _is_filled(place)}

    def _sweep(self) -> None:
        """Remove what a run that was killed while writing left behind."""
        names = (_DRAFT.fullmatch(place.name) for place in self._places())
        with told_as_unreadable(self.path):
            for name in {match[1] for match in names if match}:
                sweep(self.path / name)

    def _places(self) -> list[Path]:
        with told_as_unreadable(self.path):
            return [*self.path.iterdir()] if self.path.is_dir() else []


def _is_filled(place: Path) -> bool:
    """Whether there is anything in a folder; not being allowed to know it is an error, and not the same as nothing."""
    with told_as_unreadable(place):
        try:
            return any(place.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return False


def _has_document(place: Path) -> bool:
    with told_as_unreadable(place):
        try:
            (place / DOCUMENT).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def _refuse_without_document(place: Path) -> None:
    """Take a checkpoint that lost its document for damaged: it had one when it got its name."""
    if not _has_document(place) and _is_filled(place):
        raise DamagedFolderError(place, f"damaged: its {DOCUMENT} is missing")


@final
class Timetable:
    """When checkpoints are due."""

    def __init__(self, settings: TrainingSettings) -> None:
        self._steps = settings.checkpoint_steps
        self._seconds = None if settings.checkpoint_minutes is None else 60.0 * settings.checkpoint_minutes
        self._last = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Whether a checkpoint should be written after this step."""
        if self._steps is not None and step % self._steps == 0:
            return True
        return self._seconds is not None and time.monotonic() - self._last >= self._seconds

    def written(self) -> None:
        """Note that one was written."""
        self._last = time.monotonic()


def describe_run(
    model: CorrelatedModel,
    data: TrainingData,
    settings: TrainingSettings,
    validation: TrainingData | None,
    device: torch.device,
) -> dict[str, Any]:
    """Say, as JSON, all that must be the same for a checkpoint to be taken up."""
    numbers = {name: value for name, value in asdict(settings).items() if name not in _FREE}
    numbers["gamma"] = list(settings.gamma) if isinstance(settings.gamma, tuple) else settings.gamma
    return {
        **numbers,
        "device": device.type,
        **_describe_model(model),
        "data": _describe_data(data),
        "validation": None if validation is None else _describe_data(validation),
    }


def _describe_model(model: CorrelatedModel) -> dict[str, Any]:
    """All that makes a model what it is, but its weights: those come from the checkpoint."""
    kinds = {"encoder": model.encoder, "decoder": model.decoder, "pair_network": model.pair_network}
    return {
        **{name: type(part).__qualname__ for name, part in kinds.items()},
        "likelihood": type(model.likelihood).__qualname__,
        "tau": "learned" if isinstance(model.tau, LearnedTau) else model.tau,
        "min_stddev": getattr(model.encoder, "floor", None),
        "normalize": model.inputs.normalize,
        "dropout": model.inputs.dropout,
        "pair_inputs": model.pair_inputs and [model.pair_inputs.normalize, model.pair_inputs.dropout],
        "networks": {name: [str(tensor.dtype), *tensor.shape] for name, tensor in model.state_dict().items()},
    }


def _describe_data(data: TrainingData) -> dict[str, Any]:
    """Sizes, and a fingerprint of graph, weights and rows evenly spread (the features may be larger than memory)."""
    n_rows = data.n_vertices
    rows = data.table.rows(np.arange(0, n_rows, max(1, n_rows // _HASHED_ROWS)))
    parts = [rows.values.numpy()]
    if isinstance(rows, SparseRows):
        parts += [rows.pattern.columns.numpy(), rows.pattern.offsets.numpy()]
    if rows.observed is not None:
        parts.append(rows.observed.numpy())
    parts += [part for part in (data.edges, data.weights, data.sample_weights) if part is not None]
    return {
        "shape": list(data.table.shape),
        "edges": data.n_edges,
        "missing": data.table.missing,
        "redrawn": data.redraw is not None,
        "fingerprint": _digest(parts),
    }


def _digest(parts: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).reshape(-1).data)
    return digest.hexdigest()
