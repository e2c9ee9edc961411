"""Files of features for tests, and what reading them gives."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.io import Features, read_features


def dense(features: Features) -> np.ndarray:
    """Return the matrix of features as an array."""
    matrix = features.matrix
    return matrix.toarray() if isinstance(matrix, sparse.csr_array) else np.asarray(matrix)


def read(folder: Path, content: str | bytes, name: str = "features.csv", **how) -> Features:
    """Write a file and read its features."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_features(path, **how)


def rejected(folder: Path, content: str | bytes, name: str = "features.csv", **how) -> tuple[int | None, str]:
    """Write a file that cannot be read; return the line and the sentence of the error."""
    with pytest.raises(DataFileError) as caught:
        read(folder, content, name, **how)
    assert caught.value.path == folder / name
    return caught.value.line, caught.value.problem
