"""Tables in files, as the readers of wide and long ones see them: columns that come in batches."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import column_positions

if TYPE_CHECKING:
    import pyarrow

# A key is an id or an item: it comes as strings under numbers (Arrow's dictionaries). A number comes as float64.
Kind = Literal["key", "number"]


class TableFile(ABC):
    """A file with columns.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    names : list of str or None
        The names of its columns; ``None`` if it has none.
    n_columns : int
        How many there are.
    """

    path: Path
    names: list[str] | None
    n_columns: int

    @abstractmethod
    def usual_id(self) -> int:
        """Give the position of the column that holds ids if nobody says which."""

    @abstractmethod
    def sample(self, positions: Sequence[int]) -> list[list[str]]:
        """Give the first rows of some columns as texts; what is missing is an empty one."""

    @abstractmethod
    def batches(self, positions: Sequence[int], kinds: Sequence[Kind]) -> "Iterator[list[pyarrow.Array]]":
        """Give some columns, a batch of rows at a time. A missing number is null; a missing key is refused."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Say where in the file a row is, for people."""

    def id_position(self, id_column: str | int | None) -> int:
        """Give the position of the column of ids."""
        if id_column is None:
            return self.usual_id()
        return column_positions(self.path, [id_column], self.names, self.n_columns)[0]

    def name_of(self, position: int) -> str:
        """Name a column in a sentence."""
        return f"column {position} (from 0)" if self.names is None else f"column {self.names[position]!r}"

    def check_names(self) -> None:
        """Refuse names that are there twice."""
        seen: set[str] = set()
        for name in self.names or ():
            if name in seen:
                raise DataFileError(self.path, f"there is more than one column named {name!r}")
            seen.add(name)
