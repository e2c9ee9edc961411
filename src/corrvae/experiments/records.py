"""What a run of an experiment leaves behind: one JSON file for each model and seed, which tables and reports read."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, final

from corrvae.drafts import draft_of_file
from corrvae.errors import DataFileError
from corrvae.experiments.published import TASKS
from corrvae.regular import open_regular

FORMAT = 1
_ANEW = ". Remove it, and the next `corrvae reproduce` makes that run anew"
_MOST_BYTES = 1 << 24  # parsed, JSON can take thirty times as much; records have a few hundred KB


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
        Of Python and the libraries, and under "source" a code of the package's files.
    command
        The command that repeats it.
    finished
        When, in ISO form, UTC.
    seconds, peak_megabytes
        Time of the whole run, and the most memory that a process of it held; both count what went before an
        interruption.
    history
        The terms of the objective by name with the steps they were taken at, or ``None`` for what is not trained.
    machine
        Threads of the run and processors of the machine; empty in older records.
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
    machine: dict[str, int] = field(default_factory=dict)
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
    with draft_of_file(path) as draft:
        draft.write_text(_laid_out({"format": FORMAT, **asdict(record)}), encoding="utf-8")
    return path


def _laid_out(document: dict[str, Any]) -> str:
    """Write JSON with a line for each entry and each entry of an entry: long lists of numbers take one line each."""

    def lines(entries: dict[str, Any], indent: str, write: Callable[[Any], str]) -> str:
        inside = ",\n".join(f"{indent} {json.dumps(name)}: {write(value)}" for name, value in entries.items())
        return f"{{\n{inside}\n{indent}}}"

    def compact(value: Any) -> str:
        return json.dumps(value, allow_nan=False)

    def entry(value: Any) -> str:
        return lines(value, " ", compact) if isinstance(value, dict) and value else compact(value)

    return lines(document, "", entry) + "\n"


def read_record(path: Path) -> Record:
    """Read a record; what is not one, or is not that of its path, is refused with the path."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise DataFileError(path, f"has more than {_MOST_BYTES:,} bytes, too many for the record of a run{_ANEW}")
        document = json.loads(data)
    except DataFileError:
        raise
    except OSError as error:
        raise DataFileError(path, f"cannot be read as the record of a run ({error})") from error
    except (ValueError, RecursionError) as error:
        raise DataFileError(path, f"cannot be read as the record of a run ({error}){_ANEW}") from error
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise DataFileError(path, f"is not the record of a run in format {FORMAT}")
    if problem := _wrong_kind(document):
        raise DataFileError(path, f"is not the record of a run: {problem}{_ANEW}")
    try:
        sketches = document.pop("sketches", None)
        record = Record(**document, sketches=Sketches(**sketches) if sketches is not None else None)
    except TypeError as error:
        names = ", ".join(field.name for field in fields(Record))
        raise DataFileError(path, f"is not the record of a run: it needs {names}{_ANEW}") from error
    if problem := _wrong_value(record):
        raise DataFileError(path, f"is not the record of a run: {problem}{_ANEW}")
    if problem := _wrong_place(record, path):
        raise DataFileError(path, f"is not the record of a run: {problem}")
    return record


def read_records(folder: Path) -> Iterator[Record]:
    """Read every record below a folder, in the order of their paths."""
    for path in sorted(folder.glob("*/*/*/seed-*.json")):
        yield read_record(path)


_KINDS: dict[Any, tuple[str, ...]] = {
    str: ("task", "recipe", "model", "label", "command", "finished"),
    dict: ("scores", "settings", "data", "versions", "machine"),
    dict | NoneType: ("history", "sketches"),
    int: ("seed",),
}
_MISSING = object()
_SHOWN = 80
_LISTS_OF_SKETCHES = ("points", "edges", "linked", "random", "weight_counts", "weight_bounds")


def _wrong_kind(document: dict[str, Any]) -> str | None:
    """Say which field does not hold what it should; what is missing is told when the record is made."""
    for kind, names in _KINDS.items():
        for name in names:
            value = document.get(name, _MISSING)
            if value is not _MISSING and (not isinstance(value, kind) or isinstance(value, bool)):
                return f"{name} is {_shown(value)}"
    for name in ("seconds", "peak_megabytes"):
        if name in document and not (_is_number(document[name]) and document[name] >= 0):
            return f"{name} is {_shown(document[name])}"
    for name, score in document.get("scores", {}).items():
        if not _is_number(score):
            return f"the score {name[:_SHOWN]} is {_shown(score)}"
    for name, column in (document.get("history") or {}).items():
        if not isinstance(column, list) or not all(_is_number(value) for value in column):
            return f"{name} of its history is not a list of numbers"
    sketches = document.get("sketches") or {}
    for name in _LISTS_OF_SKETCHES:
        if not isinstance(sketches.get(name, []), list):
            return f"{name} of its sketches is not a list"
    return None


def _wrong_value(record: Record) -> str | None:
    """Say what is of the right kind and yet cannot be."""
    if record.task not in TASKS:
        return f"task is {_shown(record.task)}; there are {', '.join(sorted(TASKS))}"
    if TASKS[record.task].metric not in record.scores:
        return f"it has no score {TASKS[record.task].metric}"
    return None


def _wrong_place(record: Record, path: Path) -> str | None:
    """Say where a record belongs that lies elsewhere."""
    place = record_path(Path(), record.task, record.recipe, record.model, record.seed)
    if path.absolute().parts[-len(place.parts) :] == place.parts:
        return None
    return f"by its content it should be {place.as_posix()}"


def _shown(value: Any) -> str:
    """Spell a value in an error; one may be as long as its file, or nested deeper than Python spells."""
    try:
        shown = repr(value)
    except RecursionError:
        return "nested too deep"
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond what a float can hold
        return False
