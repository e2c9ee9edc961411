"""What can go wrong with files and folders.

Bad values raise ``ValueError`` and ``TypeError`` in scikit-learn's manner. A problem with a file or folder raises one
of these, which carry its path.
"""

from errno import ENOENT
from pathlib import Path


class CorrvaeError(Exception):
    """Base of every error that corrvae raises about files, folders and runs."""


class DataFileError(CorrvaeError, ValueError):
    """A data file that cannot be read as what it should be.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    problem : str
        What is wrong with it.
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(path, problem)
        self.path = Path(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class MissingDataFileError(DataFileError, FileNotFoundError):
    """A data file that is not there."""

    def __init__(self, path: str | Path, problem: str = "there is no such file") -> None:
        super().__init__(path, problem)
        self.errno, self.filename = ENOENT, str(path)  # as FileNotFoundError has them
