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
from torch.nn.functional import embedding_bag


class Rows(ABC):
    """A batch of feature rows.

    `values` holds the entries (all of them, or the stored ones of a sparse batch). `observed`, of the same shape, is
    False where an entry is missing; ``None`` says that nothing is. A missing entry has the value 0, so it adds nothing
    to a product. The entries that a sparse batch does not store are zeros that were observed.
    """

    values: Tensor
    observed: Tensor | None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def affine(self, weight: Float[Tensor, "features outputs"], bias: Float[Tensor, " outputs"]) -> Tensor:
        """Give ``rows @ weight + bias``, differentiable in weight and bias."""

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

    def affine(self, weight: Float[Tensor, "features outputs"], bias: Float[Tensor, " outputs"]) -> Tensor:
        """Give ``rows @ weight + bias``."""
        return torch.addmm(bias, self.values, weight)

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
class SparseRows(Rows):
    """A batch of rows as their stored entries, row after row (CSR).

    Parameters
    ----------
    values, columns
        The stored entries and their columns; a column occurs at most once in a row.
    offsets
        Where each row begins, and the end: row r holds the entries ``offsets[r]:offsets[r + 1]``.
    n_columns
        Number of features.
    observed
        False where a stored entry is missing (its value must be 0).

    Examples
    --------
    >>> rows = SparseRows(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 2, 1]), torch.tensor([0, 2, 3]), 3)
    >>> rows.dense()
    tensor([[1., 0., 2.],
            [0., 3., 0.]])
    >>> rows.affine(torch.eye(3), torch.zeros(3)).equal(rows.dense())
    True
    """

    values: Float[Tensor, " entries"]
    columns: Int[Tensor, " entries"]
    offsets: Int[Tensor, " boundaries"]
    n_columns: int
    observed: Bool[Tensor, " entries"] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.offsets) - 1, self.n_columns

    @cached_property
    def row_of(self) -> Int[Tensor, " entries"]:
        """The row of each stored entry."""
        rows = torch.arange(self.shape[0], device=self.offsets.device)
        return torch.repeat_interleave(rows, self.offsets.diff(), output_size=len(self.values))

    @cached_property
    def transposed(self) -> "SparseRows":
        """The same entries, column after column: what the gradient of a product gathers over."""
        order = torch.argsort(self.columns, stable=True)
        offsets = torch.zeros(self.n_columns + 1, dtype=torch.int64, device=self.columns.device)
        torch.cumsum(torch.bincount(self.columns, minlength=self.n_columns), 0, out=offsets[1:])
        return SparseRows(self.values[order], self.row_of[order], offsets, self.shape[0])

    def affine(self, weight: Float[Tensor, "features outputs"], bias: Float[Tensor, " outputs"]) -> Tensor:
        """Give ``rows @ weight + bias``: for each row a gather and sum over its stored entries."""
        return _SparseAffine.apply(weight, bias, self)  # pyright: ignore[reportReturnType]

    def map(self, function: Callable[[Tensor], Tensor]) -> "SparseRows":
        """Apply a function with f(0) = 0 to every entry."""
        return replace(self, values=function(self.values))

    def scale(self, factors: Float[Tensor, " rows"]) -> "SparseRows":
        """Multiply each row by its factor."""
        return replace(self, values=self.values * factors[self.row_of])

    def sums(self, function: Callable[[Tensor], Tensor] | None = None) -> Float[Tensor, " rows"]:
        """Sum each row, of f(entry) if a function is given."""
        return self.sum_entries(self.values if function is None else function(self.values))

    def sum_entries(self, entries: Float[Tensor, " entries"]) -> Float[Tensor, " rows"]:
        """Sum, for each row, one number for each of its stored entries."""
        return entries.new_zeros(self.shape[0]).index_add(0, self.row_of, entries)

    def take(self, matrix: Float[Tensor, "rows features"]) -> Float[Tensor, " entries"]:
        """Give a matrix's elements at the places of the stored entries."""
        return matrix.reshape(-1)[self.row_of * self.n_columns + self.columns]

    def head(self, count: int) -> "SparseRows":
        """Give the first `count` rows."""
        end = int(self.offsets[count])
        return replace(
            self,
            values=self.values[:end],
            columns=self.columns[:end],
            offsets=self.offsets[: count + 1],
            observed=None if self.observed is None else self.observed[:end],
        )

    def dense(self) -> Float[Tensor, "rows features"]:
        """Give the batch as a matrix."""
        matrix = self.values.new_zeros(self.shape)
        matrix[self.row_of, self.columns] = self.values
        return matrix

    def to(self, target: torch.device | torch.dtype) -> "SparseRows":
        """Move the batch to a device, or its values to a type."""
        if isinstance(target, torch.dtype):
            return replace(self, values=self.values.to(target))
        return replace(
            self,
            values=self.values.to(target),
            columns=self.columns.to(target),
            offsets=self.offsets.to(target),
            observed=None if self.observed is None else self.observed.to(target),
        )


def _gather_sum(rows: SparseRows, table: Tensor) -> Tensor:
    return embedding_bag(
        rows.columns, table, rows.offsets, mode="sum", per_sample_weights=rows.values, include_last_offset=True
    )


class _SparseAffine(torch.autograd.Function):
    """Sparse rows times a matrix.

    The gradient is the product with the transposed batch, again a gather and sum: several times faster than the
    backward pass of `embedding_bag`, and the transposition serves every layer that reads the batch.
    """

    @staticmethod
    def forward(ctx, weight: Tensor, bias: Tensor, rows: SparseRows) -> Tensor:
        ctx.rows = rows
        return _gather_sum(rows, weight).add_(bias)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gradient,) = gradients
        return _gather_sum(ctx.rows.transposed, gradient.contiguous()), gradient.sum(0), None
