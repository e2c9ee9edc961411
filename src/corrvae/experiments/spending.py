"""What a run has taken so far, kept beside its checkpoint, so that a run that is taken up again counts all of it."""

import json
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from corrvae.drafts import draft_of_file
from corrvae.regular import open_regular

_MOST_BYTES = 1 << 12


@final
@dataclass(frozen=True)
class Spending:
    """Time and memory.

    Attributes
    ----------
    seconds
        Of all processes of a run together.
    peak_megabytes
        The most that one of them held.
    """

    seconds: float = 0.0
    peak_megabytes: float = 0.0

    def plus(self, seconds: float, peak_megabytes: float) -> "Spending":
        """Add what another process took.

        Examples
        --------
        >>> Spending(10.0, 500.0).plus(5.0, 400.0)
        Spending(seconds=15.0, peak_megabytes=500.0)
        """
        return Spending(self.seconds + seconds, max(self.peak_megabytes, peak_megabytes))


def spending_path(checkpoint: Path) -> Path:
    """Where it is kept.

    Examples
    --------
    >>> spending_path(Path("ind/seed-0")).as_posix()
    'ind/seed-0.spent.json'
    """
    return checkpoint.with_name(f"{checkpoint.name}.spent.json")


def read_spending(checkpoint: Path) -> Spending:
    """Give what was taken before; nothing if there is no checkpoint to go on from, or if it cannot be read."""
    if not checkpoint.is_dir():
        return Spending()
    try:
        with open_regular(spending_path(checkpoint)) as stream:
            found = Spending(**json.loads(stream.read(_MOST_BYTES)))
        whole = math.isfinite(found.seconds) and math.isfinite(found.peak_megabytes)
    except (OSError, ValueError, TypeError, RecursionError, OverflowError):
        return Spending()
    return found if whole and min(found.seconds, found.peak_megabytes) >= 0 else Spending()


def write_spending(checkpoint: Path, spending: Spending) -> None:
    """Write it down, if there is a checkpoint; a disk that is full is no reason to stop the run."""
    if not checkpoint.is_dir():
        return
    path = spending_path(checkpoint)
    with suppress(OSError), draft_of_file(path) as draft:
        draft.write_text(json.dumps(asdict(spending)), encoding="utf-8")
