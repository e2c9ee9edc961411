"""Rows of features as the networks read them: a dense matrix, or the non-zeros of each row.

Networks see a batch only through `Rows`: an affine map of it (the first layer), sums along its rows, and its entries as
the target of a likelihood. A sparse batch therefore never becomes a dense one on its way through a model.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from corrvae.nn.kernels import choice

_SUM = 0  # the mode, as `torch.embedding_bag` has it


class Rows(ABC):
    """A batch of feature rows.

    `values` holds the entries (all of them, or the stored ones of a sparse batch). `observed`, of the same shape, is
    False where an entry is missing; ``None`` says that nothing is. A missing entry has the value 0, so it adds nothing
    to a product. The entries that a sparse batch does not store are zeros that were observed.

    Examples
    --------
    >>> rows: Rows = DenseRows(torch.tensor([[1.0, 0.0], [2.0, 3.0]]))
    >>> rows.shape, rows.sums()
    ((2, 2), tensor([1., 5.]))
    """

    values: Tensor
    observed: Tensor | None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def times(self, weight: Float[Tensor, "features outputs"]) -> Float[Tensor, "rows outputs"]:
        """Give ``rows @ weight``, without a derivative."""

    @abstractmethod
    def transposed_times(self, matrix: Float[Tensor, "rows outputs"]) -> Float[Tensor, "features outputs"]:
        """Give ``rows.T @ matrix``, without a derivative."""

    def affine(self, weight: Float[Tensor, "features outputs"], bias: Float[Tensor, " outputs"]) -> Tensor:
        """Give ``rows @ weight + bias``, differentiable in weight and bias."""
        return _Affine.apply(weight, bias, self)  # pyright: ignore[reportReturnType]

    @abstractmethod
    def map(self, function: Callable[[Tensor], Tensor]) -> "Rows":
        """Apply a function with f(0) = 0 to every entry."""

    @abstractmethod
    def scale(self, factors: Float[Tensor, " rows"]) -> "Rows":
        """Multiply each row by its factor."""

    @abstractmethod
    def sums(self, function: Callable[[Tensor], Tensor] | None = None) -> Float[Tensor, " rows"]:
        """Sum each row, of f(entry) if a function with f(0) = 0 is given."""

    @abstractmethod
    def head(self, count: int) -> "Rows":
        """Give the first `count` rows."""

    @abstractmethod
    def mask_missing(self) -> "Rows":
        """Take entries that are not a number as missing: their value becomes 0, and `observed` False."""

    @abstractmethod
    def dense(self) -> Float[Tensor, "rows features"]:
        """Give the batch as a matrix."""

    @abstractmethod
    def to(self, target: torch.device | torch.dtype) -> "Rows":
        """Move the batch to a device, or its values to a type."""


@final
@dataclass(frozen=True, eq=False)
class DenseRows(Rows):
    """A batch of rows as a matrix.

    Parameters
    ----------
    values
        The entries.
    observed
        False where an entry is missing (its value must be 0).

    Examples
    --------
    >>> rows = DenseRows(torch.tensor([[1.0, 0.0, 2.0]]))
    >>> rows.affine(torch.ones(3, 1), torch.tensor([0.5]))
    tensor([[3.5000]])
    """

    values: Float[Tensor, "rows features"]
    observed: Bool[Tensor, "rows features"] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    def times(self, weight: Float[Tensor, "features outputs"]) -> Float[Tensor, "rows outputs"]:
        """Give ``rows @ weight``, without a derivative."""
        return self.values.mm(weight.detach())

    def transposed_times(self, matrix: Float[Tensor, "rows outputs"]) -> Float[Tensor, "features outputs"]:
        """Give ``rows.T @ matrix``, without a derivative."""
        return self.values.t().mm(matrix.detach())

    def map(self, function: Callable[[Tensor], Tensor]) -> "DenseRows":
        """Apply a function with f(0) = 0 to every entry."""
        return replace(self, values=function(self.values))

    def scale(self, factors: Float[Tensor, " rows"]) -> "DenseRows":
        """Multiply each row by its factor."""
        return replace(self, values=self.values * factors[:, None])

    def sums(self, function: Callable[[Tensor], Tensor] | None = None) -> Float[Tensor, " rows"]:
        """Sum each row, of f(entry) if a function is given."""
        return (self.values if function is None else function(self.values)).sum(1)

    def head(self, count: int) -> "DenseRows":
        """Give the first `count` rows, without copying."""
        return replace(
            self, values=self.values[:count], observed=None if self.observed is None else self.observed[:count]
        )

    def mask_missing(self) -> "DenseRows":
        """Take entries that are not a number as missing."""
        missing = self.values.isnan()
        return DenseRows(self.values.masked_fill(missing, 0.0), ~missing)

    def dense(self) -> Float[Tensor, "rows features"]:
        """Give the matrix itself."""
        return self.values

    def to(self, target: torch.device | torch.dtype) -> "DenseRows":
        """Move the batch to a device, or its values to a type."""
        observed = self.observed
        if observed is not None and isinstance(target, torch.device):
            observed = observed.to(target)
        return replace(self, values=self.values.to(target), observed=observed)


@final
@dataclass(frozen=True, eq=False)
class SparsePattern:
    """Where the stored entries of sparse rows are, row after row (CSR).

    Parameters
    ----------
    columns
        Column of each stored entry; a column occurs at most once in a row.
    offsets
        Where each row begins, and the end: row r holds the entries ``offsets[r]:offsets[r + 1]``.
    n_columns
        Number of features.
    row_of
        Row of each stored entry.

    Examples
    --------
    >>> SparsePattern.of(torch.tensor([0, 2, 1]), torch.tensor([0, 2, 3]), 3).row_of
    tensor([0, 0, 1])
    """

    columns: Int[Tensor, " entries"]
    offsets: Int[Tensor, " boundaries"]
    n_columns: int
    row_of: Int[Tensor, " entries"]

    @classmethod
    def of(
        cls, columns: Int[Tensor, " entries"], offsets: Int[Tensor, " boundaries"], n_columns: int
    ) -> "SparsePattern":
        """Make a pattern from CSR's arrays."""
        rows = torch.arange(len(offsets) - 1, device=offsets.device)
        return cls(columns, offsets, n_columns, torch.repeat_interleave(rows, offsets.diff(), output_size=len(columns)))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @cached_property
    def flat(self) -> Int[Tensor, " entries"]:
        """The place of each stored entry in the matrix read row by row."""
        return torch.add(self.columns, self.row_of, alpha=self.n_columns)

    @cached_property
    def transposition(self) -> "Transposition":
        """The same entries column after column."""
        return Transposition.of(self)

    def head(self, count: int) -> "SparsePattern":
        """Give the pattern of the first `count` rows."""
        end = int(self.offsets[count])
        return SparsePattern(self.columns[:end], self.offsets[: count + 1], self.n_columns, self.row_of[:end])

    def to(self, device: torch.device) -> "SparsePattern":
        """Move the pattern to a device."""
        columns, offsets, row_of = (part.to(device) for part in (self.columns, self.offsets, self.row_of))
        return SparsePattern(columns, offsets, self.n_columns, row_of)


@final
@dataclass(frozen=True, eq=False)
class Transposition:
    """The entries of sparse rows put column after column, rows ascending within one.

    Attributes
    ----------
    order
        The entries in this order.
    rows
        Their rows.
    offsets
        Where each column begins, and the end.
    """

    order: Int[Tensor, " entries"]
    rows: Int[Tensor, " entries"]
    offsets: Int[Tensor, " boundaries"]

    @classmethod
    def of(cls, pattern: SparsePattern) -> "Transposition":
        """Sort a pattern's entries by column.

        Examples
        --------
        >>> Transposition.of(SparsePattern.of(torch.tensor([0, 2, 1]), torch.tensor([0, 2, 3]), 3)).order
        tensor([0, 2, 1])
        """
        columns, row_of = pattern.columns, pattern.row_of
        if columns.is_cpu and choice.used():
            from corrvae.nn.kernels.picking import sort_by_column

            return cls(*map(torch.from_numpy, sort_by_column(columns.numpy(), row_of.numpy(), pattern.n_columns)))
        order = torch.argsort(columns, stable=True)
        counts = torch.bincount(columns, minlength=pattern.n_columns)
        return cls(order, row_of[order], torch.cat([counts.new_zeros(1), counts.cumsum(0)]))


@final
@dataclass(frozen=True, eq=False)
class SparseRows(Rows):
    """A batch of rows as their stored entries.

    Parameters
    ----------
    values
        The stored entries.
    pattern
        Where they are.
    observed
        False where a stored entry is missing (its value must be 0).

    Examples
    --------
    >>> pattern = SparsePattern.of(torch.tensor([0, 2, 1]), torch.tensor([0, 2, 3]), 3)
    >>> rows = SparseRows(torch.tensor([1.0, 2.0, 3.0]), pattern)
    >>> rows.dense()
    tensor([[1., 0., 2.],
            [0., 3., 0.]])
    >>> rows.affine(torch.eye(3), torch.zeros(3)).equal(rows.dense())
    True
    """

    values: Float[Tensor, " entries"]
    pattern: SparsePattern
    observed: Bool[Tensor, " entries"] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.n_rows, self.pattern.n_columns

    @cached_property
    def values_by_column(self) -> Float[Tensor, " entries"]:
        """The stored entries column after column: what the gradient of a product gathers with."""
        return self.values.index_select(0, self.pattern.transposition.order)

    def times(self, weight: Float[Tensor, "features outputs"]) -> Float[Tensor, "rows outputs"]:
        """Give ``rows @ weight``, without a derivative: for each row a gather and sum over its stored entries."""
        return _gather_sum(self.pattern.columns, self.values, self.pattern.offsets, weight)

    def transposed_times(self, matrix: Float[Tensor, "rows outputs"]) -> Float[Tensor, "features outputs"]:
        """Give ``rows.T @ matrix``, without a derivative: for each column a gather and sum over its stored entries.

        This is several times faster than the backward pass of `embedding_bag`, and the transposition that it needs
        serves every layer that reads the batch.
        """
        columns = self.pattern.transposition
        return _gather_sum(columns.rows, self.values_by_column, columns.offsets, matrix.contiguous())

    def map(self, function: Callable[[Tensor], Tensor]) -> "SparseRows":
        """Apply a function with f(0) = 0 to every entry."""
        return SparseRows(function(self.values), self.pattern, self.observed)

    def scale(self, factors: Float[Tensor, " rows"]) -> "SparseRows":
        """Multiply each row by its factor."""
        return SparseRows(self.values * factors[self.pattern.row_of], self.pattern, self.observed)

    def sums(self, function: Callable[[Tensor], Tensor] | None = None) -> Float[Tensor, " rows"]:
        """Sum each row, of f(entry) if a function is given."""
        return self.sum_entries(self.values if function is None else function(self.values))

    def sum_entries(self, entries: Float[Tensor, " entries"]) -> Float[Tensor, " rows"]:
        """Sum, for each row, one number for each of its stored entries."""
        return entries.new_zeros(self.shape[0]).index_add(0, self.pattern.row_of, entries)

    def take(self, matrix: Float[Tensor, "rows features"]) -> Float[Tensor, " entries"]:
        """Give a matrix's elements at the places of the stored entries."""
        return matrix.reshape(-1).index_select(0, self.pattern.flat)

    def head(self, count: int) -> "SparseRows":
        """Give the first `count` rows, without copying."""
        pattern = self.pattern.head(count)
        end = len(pattern.columns)
        return SparseRows(self.values[:end], pattern, None if self.observed is None else self.observed[:end])

    def mask_missing(self) -> "SparseRows":
        """Take stored entries that are not a number as missing."""
        missing = self.values.isnan()
        return SparseRows(self.values.masked_fill(missing, 0.0), self.pattern, ~missing)

    def dense(self) -> Float[Tensor, "rows features"]:
        """Give the batch as a matrix."""
        matrix = self.values.new_zeros(self.shape)
        matrix.view(-1)[self.pattern.flat] = self.values
        return matrix

    def to(self, target: torch.device | torch.dtype) -> "SparseRows":
        """Move the batch to a device, or its values to a type."""
        if isinstance(target, torch.dtype):
            return SparseRows(self.values.to(target), self.pattern, self.observed)
        observed = None if self.observed is None else self.observed.to(target)
        return SparseRows(self.values.to(target), self.pattern.to(target), observed)


def _gather_sum(indices: Tensor, values: Tensor, offsets: Tensor, table: Tensor) -> Tensor:
    # Detached, since for a table that requires a gradient `embedding_bag` also prepares a backward pass of its own. The
    # function of the same name in `torch.nn.functional` checks its arguments for a twentieth of the time of the call.
    return torch.embedding_bag(table.detach(), indices, offsets, False, _SUM, False, values, True)[0]


class _Affine(torch.autograd.Function):
    """Rows times a matrix, plus a vector."""

    @staticmethod
    def forward(ctx, weight: Tensor, bias: Tensor, rows: Rows) -> Tensor:
        ctx.rows = rows
        return rows.times(weight).add_(bias)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        return ctx.rows.transposed_times(gradients[0]), gradients[0].sum(0), None
