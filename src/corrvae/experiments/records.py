"""What a run of an experiment leaves behind: one JSON file for each model and seed, which tables and reports read."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

from corrvae.errors import DataFileError

FORMAT = 1


@final
@dataclass(frozen=True)
class Sketches:
    """What the report draws of a run, cut down to what a reader's eye can tell apart.

    Attributes
    ----------
    points
        Some vertices, each with two coordinates.
    groups
        The group of each, or ``None``.
    edges
        Edges among them, as positions in `points`.
    linked, random
        Scores of some linked and of some random pairs, in the run's metric.
    metric
        What was measured, as a person would call it: "expected squared distance".
    weight_counts, weight_bounds
        Histogram of the spanning weights: one bound more than counts.
    """

    points: list[list[float]]
    groups: list[int] | None
    edges: list[list[int]]
    linked: list[float]
    random: list[float]
    metric: str
    weight_counts: list[int]
    weight_bounds: list[float]


@final
@dataclass(frozen=True)
class Record:
    """A finished run of one model with one seed.

    Attributes
    ----------
    task
        "matching", "clustering" or "links".
    recipe
        "recommended", "paper" or "quick".
    model, label
        The model's name on the command line ("ind"), and for people ("CVAE_ind").
    seed
        Of data, splits and training.
    scores
        Every number of the task, by name.
    settings
        All that the model was made and trained with.
    data
        What it was trained on: name, sizes, fingerprint.
    versions
        Of Python and the libraries.
    command
        The command that repeats it.
    finished
        When, in ISO form, UTC.
    seconds, peak_megabytes
        Time of the whole run, and the most memory that the process held.
    history
        The terms of the objective by name with the steps they were taken at, or ``None`` for what is not trained.
    sketches
        What to draw, or ``None``.
    """

    task: str
    recipe: str
    model: str
    label: str
    seed: int
    scores: dict[str, float]
    settings: dict[str, Any]
    data: dict[str, Any]
    versions: dict[str, str]
    command: str
    finished: str
    seconds: float
    peak_megabytes: float
    history: dict[str, list[float]] | None = None
    sketches: Sketches | None = None


def record_path(folder: Path, task: str, recipe: str, model: str, seed: int) -> Path:
    """Where the record of a run is kept.

    Examples
    --------
    >>> record_path(Path("results"), "links", "paper", "ind", 0).as_posix()
    'results/links/paper/ind/seed-0.json'
    """
    return folder / task / recipe / model / f"seed-{seed}.json"


def write_record(folder: Path, record: Record) -> Path:
    """Write a record into a folder of results, whole or not at all, and say where it is."""
    path = record_path(folder, record.task, record.recipe, record.model, record.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(record)}, file, indent=1, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def read_record(path: Path) -> Record:
    """Read a record; what is not one is refused with its path."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataFileError(path, f"cannot be read as the record of a run ({error})") from error
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise DataFileError(path, f"is not the record of a run in format {FORMAT}")
    try:
        sketches = document.pop("sketches", None)
        return Record(**document, sketches=Sketches(**sketches) if sketches is not None else None)
    except TypeError as error:
        names = ", ".join(field.name for field in fields(Record))
        raise DataFileError(path, f"is not the record of a run: it needs {names}") from error


def read_records(folder: Path) -> Iterator[Record]:
    """Read every record below a folder, in the order of their paths."""
    for path in sorted(folder.glob("*/*/*/seed-*.json")):
        yield read_record(path)
