"""What can go wrong with files and folders.

Bad values raise ``ValueError`` and ``TypeError`` in scikit-learn's manner. A problem with a file or folder raises one
of these, which carry its path.
"""

from errno import ENOENT
from pathlib import Path


class CorrvaeError(Exception):
    """Base of every error that corrvae raises about files, folders and runs.

    Examples
    --------
    >>> from corrvae import load
    >>> try:
    ...     load("there/is/no/such/folder")
    ... except CorrvaeError as error:
    ...     print(type(error).__name__)
    FolderError
    """


class DataFileError(CorrvaeError, ValueError):
    """A data file that cannot be read as what it should be.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    problem : str
        What is wrong with it.

    Examples
    --------
    >>> print(DataFileError("edges.csv", "line 3 has one column"))
    edges.csv: line 3 has one column
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(path, problem)
        self.path = Path(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class MissingDataFileError(DataFileError, FileNotFoundError):
    """A data file that is not there.

    Examples
    --------
    >>> print(MissingDataFileError("edges.csv"))
    edges.csv: there is no such file
    """

    def __init__(self, path: str | Path, problem: str = "there is no such file") -> None:
        super().__init__(path, problem)
        self.errno, self.filename = ENOENT, str(path)  # as FileNotFoundError has them


class FolderError(CorrvaeError, ValueError):
    """A folder that cannot be read or written as what it should be.

    Attributes
    ----------
    path : pathlib.Path
        The folder, or the file in it.
    problem : str
        What is wrong with it.

    Examples
    --------
    >>> print(FolderError("run", "there is no such folder"))
    run: there is no such folder
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(path, problem)
        self.path = Path(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class DamagedFolderError(FolderError):
    """A folder that is not what was written: cut short, changed, or with parts that contradict each other.

    Folders that merely cannot be read here (for want of permission, or of a newer corrvae) raise its base.

    Examples
    --------
    >>> print(DamagedFolderError("run/model.safetensors", "truncated"))
    run/model.safetensors: truncated
    """


class TrainingError(CorrvaeError, ArithmeticError):
    """Training that met a number which is infinite or not a number.

    Attributes
    ----------
    step : int
        Steps that had been made.
    term : str
        The term of the objective that broke, or what else did.
    rows : tuple of int
        The rows involved, as far as they are known.
    held_out : bool
        Whether it happened on validation data.
    checkpoint : pathlib.Path or None
        The last checkpoint.

    Examples
    --------
    >>> TrainingError(12, "the edge term", (3, 4), None).term
    'the edge term'
    """

    def __init__(
        self, step: int, term: str, rows: tuple[int, ...], checkpoint: Path | None, held_out: bool = False
    ) -> None:
        super().__init__(step, term, rows, checkpoint, held_out)
        self.step, self.term, self.rows, self.checkpoint, self.held_out = step, term, rows, checkpoint, held_out

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.rows[:10])) + (", ..." if len(self.rows) > 10 else "")
        where = f" (rows {shown})" if self.rows else ""
        kept = "There is no checkpoint." if self.checkpoint is None else f"The last checkpoint is {self.checkpoint}."
        look = "look at these rows, " if self.rows else ""
        of_what = " of the validation data" if self.held_out else ""
        steps = "1 step" if self.step == 1 else f"{self.step:,} steps"
        return (
            f"after {steps} {self.term}{of_what} is infinite or not a number{where}; "
            f'{look}let the networks read smaller numbers (normalize="log1p" or "l2"; on the command line '
            f"--normalize log1p or l2), or lower the learning rate. {kept}"
        )


class LostRankError(CorrvaeError, RuntimeError):
    """A job of several processes in which another one cannot be reached any more.

    Attributes
    ----------
    problem : str
        What the connection said.
    step : int or None
        Steps that had been made, if it happened in training.
    checkpoint : pathlib.Path or None
        The last checkpoint.

    Examples
    --------
    >>> print(LostRankError("Connection closed by peer"))
    another process of this run has ended or cannot be reached (Connection closed by peer)
    """

    def __init__(self, problem: str, step: int | None = None, checkpoint: Path | None = None) -> None:
        super().__init__(problem, step, checkpoint)
        self.problem, self.step, self.checkpoint = problem, step, checkpoint

    def __str__(self) -> str:
        said = f"another process of this run has ended or cannot be reached ({self.problem})"
        if self.step is None:
            return said
        steps = "1 step" if self.step == 1 else f"{self.step:,} steps"
        kept = "There is no checkpoint." if self.checkpoint is None else f"The last checkpoint is {self.checkpoint}."
        return f"after {steps} {said}. {kept}"
