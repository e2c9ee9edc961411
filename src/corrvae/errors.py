"""What can go wrong with files and folders.

Bad values raise ``ValueError`` and ``TypeError`` in scikit-learn's manner. A problem with a file or folder raises one
of these, which carry its path.
"""

from pathlib import Path


class CorrvaeError(Exception):
    """Base of every error that corrvae raises about files, folders and runs."""


class DataFileError(CorrvaeError, ValueError):
    """A data file that cannot be read as what it should be.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path = Path(path)
        super().__init__(f"{self.path}: {problem}")
