"""What an experiment is given to run a model, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from corrvae.experiments.records import Sketches

# Told what is being done, how much of it is done, and how much there is if that is known.
Report = Callable[[str, int, int | None], None]


def keep_quiet(doing: str, done: int, total: int | None) -> None:
    """Report to nobody.

    Examples
    --------
    >>> keep_quiet("training", 1, 10)
    """


@final
@dataclass(frozen=True)
class Run:
    """One run of one model.

    Attributes
    ----------
    seed
        Of data, splits and training.
    checkpoint
        Folder in which an interrupted training waits to be taken up; ``None``: it is lost.
    report
        Told about the progress.
    """

    seed: int
    checkpoint: Path | None = None
    report: Report = keep_quiet


@final
@dataclass(frozen=True)
class Outcome:
    """What came out of a run, as it stands in its record.

    Attributes
    ----------
    scores, settings, data, history, sketches
        As in `corrvae.experiments.records.Record`.
    """

    scores: dict[str, float]
    settings: dict[str, Any]
    data: dict[str, Any]
    history: dict[str, list[float]] | None
    sketches: Sketches | None
