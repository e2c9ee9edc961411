"""A whole matrix of features, and how batches of its rows reach the networks."""

from typing import final

import numpy as np
import torch
from jaxtyping import Int
from scipy import sparse

from corrvae.nn.kernels import choice
from corrvae.nn.kernels.picking import pick_rows
from corrvae.nn.rows import DenseRows, Rows, SparsePattern, SparseRows
from corrvae.shards.matrix import ShardedMatrix

# Forward and backward through the first layer at the paper's widths, two threads (benchmarks/first_layer.py): gathering
# over the non-zeros is 6 to 14 times faster than the product at 1 % density, twice as fast at 10 %, even at 30 %.
DENSITY_LIMIT = 0.25
_SAMPLED_ROWS = 4096


@final
class FeatureTable:
    """A matrix of features that hands out batches of rows, sparse or dense by its density.

    The matrix is never made dense as a whole. A dense matrix of mostly zeros becomes CSR (which shrinks it), unless it
    is memory-mapped; a CSR matrix that is hardly sparse gives dense batches.

    Parameters
    ----------
    X
        Array, memory map, SciPy sparse matrix, or matrix in shards, of shape (rows, columns). What lies on the disk
        stays there.
    missing
        Whether NaN means a missing entry, to be masked out. In a sparse matrix a missing entry is a stored NaN.
    density_limit
        Batches are sparse up to this share of non-zeros.
    rows
        The rows of X that the table consists of, in its order; ``None`` takes all. They are read where they are, so
        several tables can share a matrix, and a memory map stays on disk.

    Attributes
    ----------
    shape : tuple
        Rows and columns of the table.
    sparse_batches : bool
        Whether batches are sparse.

    Examples
    --------
    >>> table = FeatureTable(sparse.csr_array(np.eye(20)))
    >>> table.rows(np.array([3, 5])).shape
    (2, 20)
    >>> FeatureTable(np.eye(20), rows=np.array([7, 3])).shape
    (2, 20)
    """

    def __init__(
        self,
        X: np.ndarray | sparse.spmatrix | sparse.sparray | ShardedMatrix,
        *,
        missing: bool = False,
        density_limit: float = DENSITY_LIMIT,
        rows: Int[np.ndarray, " rows"] | None = None,
    ) -> None:
        if not sparse.issparse(X) and not isinstance(X, np.ndarray | ShardedMatrix):
            raise TypeError(f"X must be an array or a SciPy sparse matrix, got {type(X).__name__}")
        on_disk_or_dense = isinstance(X, np.ndarray | ShardedMatrix)
        matrix = X if on_disk_or_dense else _canonical(sparse.csr_array(X, dtype=np.float32))
        if matrix.ndim != 2:
            raise ValueError(f"X must have two dimensions (rows, columns), got {matrix.ndim}")
        self.shape: tuple[int, int] = _shape(matrix) if rows is None else (len(rows), _shape(matrix)[1])
        self.missing = missing
        self.sparse_batches = _density(matrix) <= density_limit
        if self.sparse_batches and isinstance(matrix, np.ndarray) and not isinstance(matrix, np.memmap):
            matrix = sparse.csr_array(matrix, dtype=np.float32)
        self._matrix: np.ndarray | sparse.csr_array | ShardedMatrix = matrix
        self._chosen = rows

    def rows(self, indices: Int[np.ndarray, " rows"]) -> Rows:
        """Give the rows at these indices, as a batch in float32."""
        if self._chosen is not None:
            indices = self._chosen.take(indices)
        if isinstance(self._matrix, sparse.csr_array | ShardedMatrix):
            batch = _pick(self._matrix, indices)
        else:
            picked = np.array(self._matrix[indices], dtype=np.float32)
            if not self.sparse_batches:
                return self._masked(DenseRows(torch.from_numpy(picked)))
            batch = _pick(sparse.csr_array(picked), np.arange(len(picked)))
        return self._masked(batch if self.sparse_batches else DenseRows(batch.dense()))

    def _masked(self, batch: Rows) -> Rows:
        return batch.mask_missing() if self.missing else batch


def _pick(matrix: sparse.csr_array | ShardedMatrix, indices: np.ndarray) -> SparseRows:
    if isinstance(matrix, ShardedMatrix):
        found = matrix.pick(indices)
        parts = found.values, found.columns, found.offsets, found.row_of
    elif choice.used() or choice.pay_off(_shape(matrix)[0]):
        parts = pick_rows(matrix.indptr, matrix.indices, matrix.data, indices)
    else:
        parts = _pick_by_slicing(matrix, indices)
    values, columns, offsets, row_of = map(torch.from_numpy, parts)
    return SparseRows(values, SparsePattern(columns, offsets, _shape(matrix)[1], row_of))


def _pick_by_slicing(matrix: sparse.csr_array, indices: np.ndarray) -> tuple[np.ndarray, ...]:
    """Give what `pick_rows` gives, without compiling anything."""
    picked = matrix[indices]
    columns, offsets = picked.indices.astype(np.int64), picked.indptr.astype(np.int64)
    return picked.data, columns, offsets, np.repeat(np.arange(len(indices)), np.diff(offsets))


def _canonical(matrix: sparse.csr_array) -> sparse.csr_array:
    """Sum duplicate entries, on a copy: the caller's matrix stays as it was."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def _shape(matrix: np.ndarray | sparse.csr_array | ShardedMatrix) -> tuple[int, int]:
    return int(matrix.shape[0]), int(matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]


def _density(matrix: np.ndarray | sparse.csr_array | ShardedMatrix) -> float:
    """Share of non-zeros; of an array, over rows evenly spread, since a memory map may be larger than memory."""
    n_rows, n_columns = _shape(matrix)
    if n_rows * n_columns == 0:
        return 0.0
    if isinstance(matrix, sparse.csr_array | ShardedMatrix):
        return matrix.nnz / (n_rows * n_columns)
    sample = matrix[:: max(1, n_rows // _SAMPLED_ROWS)]
    return np.count_nonzero(sample) / sample.size
