"""Folders of shards for tests."""

from pathlib import Path

import numpy as np
from scipy import sparse

from corrvae.shards import ShardedMatrix, open_shards, write_shards


def sharded(folder: Path, matrix: sparse.csr_array, most_rows: int = 3, **options) -> ShardedMatrix:
    """Write a matrix in small shards, and open it."""
    write_shards(
        folder / "shards", [sparse.csr_array(matrix)], n_columns=matrix.shape[1], most_rows=most_rows, **options
    )
    return open_shards(folder / "shards").matrix


def whole(matrix: ShardedMatrix) -> np.ndarray:
    """Give all rows of a matrix, piece after piece."""
    blocks = [piece.toarray() for _, piece in matrix.pieces()]
    return np.concatenate(blocks)


def counts(n_rows: int = 60, n_columns: int = 25, seed: int = 0) -> sparse.csr_array:
    """Draw a table of counts, with empty rows."""
    generator = np.random.default_rng(seed)
    table = generator.poisson(0.2, (n_rows, n_columns)) * (generator.random((n_rows, 1)) < 0.9)
    return sparse.csr_array(table.astype(np.float32))
