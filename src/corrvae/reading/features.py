"""What a file of features holds."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Shaped
from scipy import sparse

from corrvae.shards.matrix import ShardedMatrix


@final
@dataclass(frozen=True, eq=False)
class Features:
    """A matrix of features, with the ids of its rows and the names of its columns where the file has them.

    Attributes
    ----------
    matrix
        Of float32; NaN where a wide table has an empty cell. On the disk if the file is a NPY file of float32 (a
        memory map) or a folder of shards.
    ids
        One for each row, all distinct: integers, or an array of strings; ``None``: rows are 0, 1, ....
    names
        One for each column, all distinct.

    Examples
    --------
    >>> Features(np.zeros((2, 3), dtype=np.float32), np.array([7, 9]), None).n_rows
    2
    """

    matrix: np.ndarray | sparse.csr_array | ShardedMatrix
    ids: Shaped[np.ndarray, " rows"] | None
    names: tuple[str, ...] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])  # pyright: ignore[reportOptionalSubscript]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]
