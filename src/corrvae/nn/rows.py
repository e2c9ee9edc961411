"""Feature rows as the networks read them: dense matrices, or the stored entries of sparse ones.

`FeatureTable` holds all features and returns batches of `Rows`. The networks use a batch through a few operations only:
an affine map (the first layer), sums along rows, and the entries as target of a likelihood. A sparse batch is therefore
never made dense.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import sparse
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

Counts = Literal["raw", "presence", "log"]
Entrywise = Callable[[Tensor], Tensor]
Weight = Float[Tensor, "features outputs"]
Bias = Float[Tensor, " outputs"]

# Batches are sparse up to this share of non-zeros. Forward and backward through the first layer at the paper's widths,
# two threads (benchmarks/first_layer.py): gathering the non-zeros is 6 to 14 times faster than the dense product at 1 %
# density, twice as fast at 10 %, and equal at 30 %.
DENSITY_LIMIT = 0.25
# The density of an array is estimated on about this many rows: a memory map may be larger than memory.
_SAMPLED_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Rows(ABC):
    """A batch of feature rows.

    `values` are all entries, or the stored ones of a sparse batch; `observed` is False where one is missing (its value
    is then 0), and None if none is. Entries that a sparse batch does not store are observed zeros.
    """

    values: Float[Tensor, "..."]
    observed: Bool[Tensor, "..."] | None = None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    @abstractmethod
    def affine(self, weight: Weight, bias: Bias) -> Float[Tensor, "rows outputs"]:
        """Return ``rows @ weight + bias``, differentiable in weight and bias."""

    @abstractmethod
    def spread(self, numbers: Float[Tensor, " rows"]) -> Float[Tensor, "..."]:
        """Return the number of each one's row in the shape of `values`, or one that broadcasts to it."""

    @abstractmethod
    def sum_entries(self, entries: Float[Tensor, "..."]) -> Float[Tensor, " rows"]:
        """Return the sum over each row of one number for each of `values`."""

    @abstractmethod
    def take(self, matrix: Float[Tensor, "rows features"]) -> Float[Tensor, "..."]:
        """Return the elements of a matrix at the positions of `values`."""

    @abstractmethod
    def __getitem__(self, rows: slice) -> "Rows":
        """Return consecutive rows, without copying."""

    @abstractmethod
    def dense(self) -> Float[Tensor, "rows features"]:
        """Return the batch as a matrix."""

    def map(self, function: Entrywise) -> "Rows":
        """Apply a function with f(0) = 0 to every entry."""
        return replace(self, values=function(self.values))

    def sums(self, function: Entrywise | None = None) -> Float[Tensor, " rows"]:
        """Return the sum of each row, of f(entry) if a function with f(0) = 0 is given."""
        return self.sum_entries(self.values if function is None else function(self.values))

    def scale(self, factors: Float[Tensor, " rows"]) -> "Rows":
        """Multiply each row by its factor."""
        return self.map(lambda values: values * self.spread(factors))

    def mask_missing(self) -> "Rows":
        """Mark NaN entries as missing: their value becomes 0 and `observed` False."""
        missing = self.values.isnan()
        return replace(self, values=self.values.masked_fill(missing, 0.0), observed=~missing)

    def to(self, target: torch.device | torch.dtype) -> "Rows":
        """Move the batch to a device, or convert its values to a type."""
        observed = self.observed
        if observed is not None and not isinstance(target, torch.dtype):
            observed = observed.to(target)
        return replace(self, values=self.values.to(target), observed=observed)


@final
@dataclass(frozen=True, eq=False)
class DenseRows(Rows):
    """A batch of rows as a matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.values.shape[0], self.values.shape[1]

    def affine(self, weight: Weight, bias: Bias) -> Float[Tensor, "rows outputs"]:
        """Return ``rows @ weight + bias``."""
        return torch.addmm(bias, self.values, weight)

    def spread(self, numbers: Float[Tensor, " rows"]) -> Float[Tensor, "rows 1"]:
        """Return the numbers as a column."""
        return numbers[:, None]

    def sum_entries(self, entries: Float[Tensor, "rows features"]) -> Float[Tensor, " rows"]:
        """Return the sum of each row."""
        return entries.sum(1)

    def take(self, matrix: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """Return the matrix itself."""
        return matrix

    def __getitem__(self, rows: slice) -> "DenseRows":
        return DenseRows(self.values[rows], None if self.observed is None else self.observed[rows])

    def dense(self) -> Float[Tensor, "rows features"]:
        """Return the batch as a matrix."""
        return self.values


@final
@dataclass(frozen=True, eq=False)
class SparsePattern:
    """Where the stored entries of sparse rows are (CSR): row r holds the entries ``offsets[r]:offsets[r + 1]``.

    A column occurs at most once in a row.
    """

    columns: Int[Tensor, " entries"]
    offsets: Int[Tensor, " boundaries"]
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @cached_property
    def row_of(self) -> Int[Tensor, " entries"]:
        """Row of each stored entry."""
        return torch.repeat_interleave(self.offsets.diff(), output_size=len(self.columns))

    @cached_property
    def flat(self) -> Int[Tensor, " entries"]:
        """Position of each stored entry in the matrix read row by row."""
        return torch.add(self.columns, self.row_of, alpha=self.n_columns)

    @cached_property
    def by_column(self) -> tuple[Int[Tensor, " entries"], Int[Tensor, " entries"], Int[Tensor, " boundaries"]]:
        """The entries sorted by column (CSC): their order, their rows, and where each column begins."""
        if self.columns.is_cpu:  # NumPy sorts 16 bits by radix; torch's stable sort takes several times as long
            kind = np.uint16 if self.n_columns <= 1 << 16 else np.int64
            order = torch.from_numpy(np.argsort(self.columns.numpy().astype(kind), kind="stable"))
        else:
            order = torch.argsort(self.columns, stable=True)
        counts = torch.bincount(self.columns, minlength=self.n_columns)
        return order, self.row_of[order], torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def to(self, device: torch.device) -> "SparsePattern":
        """Move the pattern to a device."""
        return SparsePattern(self.columns.to(device), self.offsets.to(device), self.n_columns)


@final
@dataclass(frozen=True, eq=False)
class SparseRows(Rows):
    """A batch of rows as their stored entries."""

    pattern: SparsePattern = field(kw_only=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.pattern.n_rows, self.pattern.n_columns

    @cached_property
    def values_by_column(self) -> Float[Tensor, " entries"]:
        """The stored entries sorted by column, which every gradient of a first layer gathers with."""
        return self.values.index_select(0, self.pattern.by_column[0])

    def affine(self, weight: Weight, bias: Bias) -> Float[Tensor, "rows outputs"]:
        """Return ``rows @ weight + bias``: each row gathers and sums the weights of its stored entries."""
        return _SparseProduct.apply(weight, self).add_(bias)  # pyright: ignore

    def spread(self, numbers: Float[Tensor, " rows"]) -> Float[Tensor, " entries"]:
        """Return the number of each stored entry's row."""
        return numbers.index_select(0, self.pattern.row_of)

    def sum_entries(self, entries: Float[Tensor, " entries"]) -> Float[Tensor, " rows"]:
        """Return the sum over each row of one number for each stored entry."""
        return entries.new_zeros(self.shape[0]).index_add(0, self.pattern.row_of, entries)

    def take(self, matrix: Float[Tensor, "rows features"]) -> Float[Tensor, " entries"]:
        """Return the elements of a matrix at the positions of the stored entries."""
        return matrix.reshape(-1).index_select(0, self.pattern.flat)

    def __getitem__(self, rows: slice) -> "SparseRows":
        start, stop, _ = rows.indices(self.shape[0])
        offsets = self.pattern.offsets[start : stop + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        pattern = SparsePattern(self.pattern.columns[entries], offsets - offsets[0], self.shape[1])
        observed = None if self.observed is None else self.observed[entries]
        return SparseRows(self.values[entries], observed, pattern=pattern)

    def dense(self) -> Float[Tensor, "rows features"]:
        """Return the batch as a matrix."""
        matrix = self.values.new_zeros(self.shape)
        matrix.view(-1)[self.pattern.flat] = self.values
        return matrix

    def to(self, target: torch.device | torch.dtype) -> Rows:
        """Move the batch to a device, or convert its values to a type."""
        pattern = self.pattern if isinstance(target, torch.dtype) else self.pattern.to(target)
        return replace(super().to(target), pattern=pattern)


class _SparseProduct(torch.autograd.Function):
    """Sparse rows times a matrix.

    The gradient, rows.T @ gradient, is the same gather-sum over the columns. It is several times faster than the
    backward pass of `embedding_bag`, and its sort by column serves every layer that reads the batch.
    """

    @staticmethod
    def forward(ctx, weight: Tensor, rows: SparseRows) -> Tensor:
        ctx.rows = rows
        return _gather_sum(weight, rows.pattern.columns, rows.pattern.offsets, rows.values)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        _, row_of, offsets = ctx.rows.pattern.by_column
        return _gather_sum(gradients[0].contiguous(), row_of, offsets, ctx.rows.values_by_column), None


def _gather_sum(table: Tensor, indices: Tensor, offsets: Tensor, factors: Tensor) -> Tensor:
    # detached: for a table that requires a gradient, embedding_bag prepares a backward pass of its own
    return embedding_bag(
        indices, table.detach(), offsets, mode="sum", per_sample_weights=factors, include_last_offset=True
    )


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """What is done to features before the model sees them, networks and likelihood alike.

    Counts stay as they are ("raw"), become 1 ("presence") or log(1 + x), perhaps divided by a scale ("log"). Real
    columns are standardised, (x - location) / scale; in sparse batches only divided by their scale, so that zeros stay
    zeros.
    """

    counts: Counts = "raw"
    location: Float[np.ndarray, " features"] | None = None
    scale: Float[np.ndarray, " features"] | None = None

    def __call__(self, rows: np.ndarray | sparse.csr_array) -> np.ndarray | sparse.csr_array:
        """Return rows in the model's units."""
        if self.counts == "raw" and self.scale is None:
            return rows
        if isinstance(rows, sparse.csr_array):
            columns = None if self.scale is None else self.scale[rows.indices]
            return sparse.csr_array((self._entries(rows.data, None, columns), rows.indices, rows.indptr), rows.shape)
        return self._entries(np.asarray(rows), self.location, self.scale)

    def _entries(self, values: np.ndarray, location: np.ndarray | None, scale: np.ndarray | None) -> np.ndarray:
        values = values.astype(np.float32)  # as features are kept, so that kept ones give the same
        if self.counts == "presence":
            return np.where(np.isnan(values), np.nan, values != 0).astype(np.float32)
        if self.counts == "log":
            return np.log1p(values) if scale is None else np.log1p(values) / scale
        centred = values if location is None else values - location
        return centred / scale

    def invert(self, features: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows features"]:
        """Return features in the user's units; what "presence" took away is not brought back."""
        if self.scale is not None:
            features = (features * self.scale + (0.0 if self.location is None else self.location)).astype(
                features.dtype
            )
        return np.expm1(features) if self.counts == "log" else features


@final
class FeatureTable:
    """All features, from which batches of rows are picked: sparse or dense ones, by the table's density.

    The matrix is never made dense as a whole, and arrays on disk (`numpy.memmap`, also inside a `csr_array`) stay
    there. A dense array in memory that is mostly zeros is converted to CSR; a CSR matrix that is hardly sparse returns
    dense batches.

    `missing`: NaN means a missing entry, in a sparse matrix a stored one. `rows` are those of X that make up the table,
    read in place, so that several tables can share a matrix. `scaling` is applied to the rows of a batch.
    """

    def __init__(
        self,
        X: np.ndarray | sparse.spmatrix | sparse.sparray,
        *,
        missing: bool = False,
        rows: Int[np.ndarray, " rows"] | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        matrix = X if isinstance(X, np.ndarray) else sparse.csr_array(X)
        if matrix.ndim != 2:
            raise ValueError(f"X must have two dimensions (rows, features), got {matrix.ndim}")
        self.missing = missing
        self.scaling = Scaling() if scaling is None else scaling
        self.sparse_batches = _density(matrix) <= DENSITY_LIMIT
        if isinstance(matrix, np.ndarray):
            if self.sparse_batches and not is_mapped(matrix):
                matrix = sparse.csr_array(matrix, dtype=np.float32)
        elif not is_mapped(matrix.indices) and not is_mapped(matrix.data) and not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's matrix is left as it is
            matrix.sum_duplicates()
        self._matrix: np.ndarray | sparse.csr_array = matrix
        self._chosen = rows
        n_rows, n_columns = matrix.shape  # pyright: ignore[reportGeneralTypeIssues]
        self.shape: tuple[int, int] = (int(n_rows) if rows is None else len(rows), int(n_columns))

    @property
    def matrix(self) -> np.ndarray | sparse.csr_array:
        """The rows of X that make up the table, as they are."""
        return self._matrix if self._chosen is None else self._matrix[self._chosen]

    def numbers(self, indices: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """Return which rows of X the rows at these positions are."""
        return indices if self._chosen is None else self._chosen[indices]

    def rows(self, indices: Int[np.ndarray, " rows"]) -> Rows:
        """Return the rows at these positions as a batch in float32."""
        picked = self._matrix[self.numbers(indices)]
        if self.sparse_batches:
            rows = picked if isinstance(picked, sparse.csr_array) else sparse.csr_array(picked)
            batch = _sparse_batch(rows, self.scaling, self.shape[1])
        else:
            dense = picked if isinstance(picked, np.ndarray) else picked.toarray()
            batch = DenseRows(torch.from_numpy(np.array(self.scaling(dense), dtype=np.float32)))
        return batch.mask_missing() if self.missing else batch


def is_mapped(array: np.ndarray | None) -> bool:
    """Return whether an array lies in a file (`numpy.memmap`), itself or as a view."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base  # pyright: ignore[reportAssignmentType]
    return False


def _sparse_batch(picked: sparse.csr_array, scaling: Scaling, n_columns: int) -> SparseRows:
    if not picked.has_canonical_format:  # a mapped matrix is checked batch by batch, not read whole
        picked.sum_duplicates()
    scaled: Any = scaling(picked)
    columns, offsets = (torch.from_numpy(part.astype(np.int64)) for part in (scaled.indices, scaled.indptr))
    values = torch.from_numpy(scaled.data.astype(np.float32))
    return SparseRows(values, pattern=SparsePattern(columns, offsets, n_columns))


def _density(matrix: np.ndarray | sparse.csr_array) -> float:
    """Return the share of non-zeros; of an array, over rows spread evenly."""
    n_rows, n_columns = matrix.shape  # pyright: ignore[reportGeneralTypeIssues]
    if n_rows * n_columns == 0:
        return 0.0
    if isinstance(matrix, sparse.csr_array):
        return matrix.nnz / (n_rows * n_columns)
    sample = matrix[:: max(1, n_rows // _SAMPLED_ROWS)]
    return np.count_nonzero(sample) / sample.size
