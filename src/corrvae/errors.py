"""The errors of corrvae: each names what was found, where, and what to do.

Wrong values raise `ValueError` or `TypeError`; these classes are for files, folders and training.
"""

from pathlib import Path
from typing import final


class CorrvaeError(Exception):
    """Base class of the errors below."""


@final
class DataFileError(CorrvaeError, ValueError):
    """A data file that cannot be read: its `path`, the `problem` with what to do, and the `line` counted from 1."""

    def __init__(self, path: str | Path, problem: str, line: int | None = None) -> None:
        super().__init__(path, problem, line)
        self.path, self.problem, self.line = Path(path), problem, line

    def __str__(self) -> str:
        return f"{self.path}{'' if self.line is None else f', line {self.line}'}: {self.problem}"


@final
class FolderError(CorrvaeError, OSError):
    """A folder that cannot be read or written: its `path`, or that of a file in it, and the `problem` with its cure."""

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(path, problem)
        self.errno = self.strerror = None  # an OSError takes its first two arguments for these
        self.path, self.problem = Path(path), problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


@final
class TrainingError(CorrvaeError, ArithmeticError):
    """Training that met a number which is infinite or not a number.

    `step` steps were taken before; `term` is the term of the objective, or the weight, that is not finite; `rows` are
    those of X involved, as far as they are known; `checkpoint` is the last one.
    """

    def __init__(self, step: int, term: str, rows: tuple[int, ...] = (), checkpoint: Path | None = None) -> None:
        super().__init__(step, term, rows, checkpoint)
        self.step, self.term, self.rows, self.checkpoint = step, term, rows, checkpoint

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.rows[:10])) + (", ..." if len(self.rows) > 10 else "")
        where = f" (rows {shown})" if self.rows else ""
        saved = "" if self.checkpoint is None else f" The last checkpoint is {self.checkpoint}."
        first = "Check these rows, normalise" if self.rows else "Normalise"
        return (
            f"{self.term} is infinite or not a number after {self.step:,} steps{where}. {first} what the networks read "
            f'(normalize="log1p" or "l2"), or lower the learning rate.{saved}'
        )
