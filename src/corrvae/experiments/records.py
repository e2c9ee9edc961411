"""What a run of an experiment leaves behind: one JSON file for each model and seed, which tables and reports read."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from corrvae.errors import DataFileError
from corrvae.experiments.published import TASKS

FORMAT = 1


@final
@dataclass(frozen=True)
class Outcome:
    """What comes out of a run, as its record has it."""

    scores: dict[str, float]
    settings: dict[str, Any]
    data: dict[str, Any]
    history: dict[str, list[float]] | None = None


@final
@dataclass(frozen=True)
class Record:
    """A finished run of one model with one seed."""

    task: str
    recipe: str
    model: str  # its name on the command line: "ind"
    label: str  # and in tables: "CVAE_ind"
    seed: int  # of data, splits and training
    scores: dict[str, float]
    settings: dict[str, Any]  # all that the model was trained with
    data: dict[str, Any]  # what it was trained on: name, sizes, files
    versions: dict[str, str]
    command: str  # that repeats it
    finished: str  # in ISO form, UTC
    seconds: float  # with those of training before an interruption
    peak_megabytes: float  # of its last process
    history: dict[str, list[float]] | None = None  # terms of the objective, with the steps they were taken at
    machine: dict[str, int] = field(default_factory=dict)  # threads of the run, processors


def record_path(folder: Path, task: str, recipe: str, model: str, seed: int) -> Path:
    """Return where the record of a run is kept."""
    return folder / task / recipe / model / f"seed-{seed}.json"


def write_record(folder: Path, record: Record) -> Path:
    """Write a record into a folder of results, whole or not at all, and return its path."""
    path = record_path(folder, record.task, record.recipe, record.model, record.seed)
    write_text(path, _format({"format": FORMAT, **asdict(record)}))
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all; its folder is made."""
    from corrvae.io import replace_file

    make_folder(path.parent)
    with replace_file(path) as stream:
        stream.write(text.encode("utf-8"))


def make_folder(folder: Path) -> None:
    """Make a folder, if it is not there."""
    from corrvae.io.folder import folder_errors

    with folder_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _format(document: dict[str, Any]) -> str:
    """Return JSON with a line for each entry and each entry of an entry: long lists of numbers take one line each."""

    def lines(entries: dict[str, Any], indent: str, write: Callable[[Any], str]) -> str:
        inside = ",\n".join(f"{indent} {json.dumps(name)}: {write(value)}" for name, value in entries.items())
        return f"{{\n{inside}\n{indent}}}"

    def compact(value: Any) -> str:
        return json.dumps(value, allow_nan=False)

    def entry(value: Any) -> str:
        return lines(value, " ", compact) if isinstance(value, dict) and value else compact(value)

    return lines(document, "", entry) + "\n"


def read_record(path: Path) -> Record:
    """Read a record; raise a `DataFileError` for a file that is not one."""
    try:
        document = json.loads(path.read_bytes())
        if document.pop("format") != FORMAT:
            raise ValueError(f"it is not in format {FORMAT}")
        document.pop("sketches", None)  # of pictures that reports had once
        record = Record(**document)
        float(record.scores[TASKS[record.task].metric])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"cannot be read as the record of a run ({type(error).__name__}: {error})"
        raise DataFileError(path, f"{problem}; remove it, and corrvae reproduce makes that run again") from error
    return record


def read_records(folder: Path) -> Iterator[Record]:
    """Read every record below a folder, in the order of their paths."""
    return map(read_record, sorted(folder.glob("*/*/*/seed-*.json")))
