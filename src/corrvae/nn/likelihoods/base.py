"""What a likelihood is: a distribution of a row of features, given the decoder's outputs for it."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from scipy import sparse
from torch import Tensor, nn

from corrvae.nn.rows import Rows, SparseRows
from corrvae.shards.matrix import ShardedMatrix

# Rows of an array looked at together when its domain is checked; a memory map is read piece by piece.
_CHECKED_ROWS = 4096


class Likelihood(nn.Module, ABC):
    """Distribution of features given the decoder's outputs, one output for each feature.

    Parameters that do not depend on the latent point (a variance, a dispersion) are the likelihood's own and learned
    with the rest. To use another distribution, subclass this or `EntrywiseLikelihood` and pass the class.

    Parameters
    ----------
    n_features
        Number of features.

    Examples
    --------
    >>> from corrvae.nn.likelihoods import Multinomial
    >>> Multinomial(3).mean(torch.zeros(1, 3), totals=torch.tensor([6.0]))
    tensor([[2., 2., 2.]])
    """

    domain: ClassVar[str]
    """What an entry must be, in words, for the sentence that refuses one."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    @abstractmethod
    def log_prob(self, outputs: Float[Tensor, "rows features"], target: Rows) -> Float[Tensor, " rows"]:
        """Give the log-probability of each row of `target`, its missing entries left out."""

    @abstractmethod
    def mean(
        self, outputs: Float[Tensor, "rows features"], totals: Float[Tensor, " rows"] | None = None
    ) -> Float[Tensor, "rows features"]:
        """Give the expected features; `totals` are the rows' sums, for likelihoods that condition on them."""

    @abstractmethod
    def sample(
        self,
        outputs: Float[Tensor, "rows features"],
        generator: np.random.Generator,
        totals: Float[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows features"]:
        """Draw features."""

    @abstractmethod
    def admits(self, values: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Say of each value whether it lies in the domain. NaN is judged elsewhere and may get either answer."""

    def check(self, X: np.ndarray | sparse.spmatrix | sparse.sparray | ShardedMatrix) -> None:
        """Raise a `ValueError` that names row and column of the first entry outside the domain, if there is one."""
        if isinstance(X, ShardedMatrix):
            for begin, piece in X.pieces():
                self._check_sparse(piece, begin)
        elif not isinstance(X, np.ndarray):
            self._check_sparse(X)
        else:
            self._check_dense(X)

    def _check_sparse(self, X: sparse.spmatrix | sparse.sparray, begin: int = 0) -> None:
        entries = sparse.coo_array(X)
        rows, columns = entries.coords
        wrong = np.flatnonzero(~(self.admits(entries.data) | np.isnan(entries.data)))
        if len(wrong):
            first = wrong[np.lexsort((columns[wrong], rows[wrong]))[0]]
            self._refuse(begin + int(rows[first]), int(columns[first]), float(entries.data[first]))

    def _check_dense(self, X: np.ndarray) -> None:
        for begin in range(0, len(X), _CHECKED_ROWS):
            piece = np.asarray(X[begin : begin + _CHECKED_ROWS])
            wrong = np.argwhere(~(self.admits(piece) | np.isnan(piece)))
            if len(wrong):
                row, column = (int(index) for index in wrong[0])
                self._refuse(begin + row, column, float(piece[row, column]))

    def _refuse(self, row: int, column: int, value: float) -> None:
        name = type(self).__name__
        told = "Negative values in data: " if value < 0 else ""  # the words that scikit-learn expects
        raise ValueError(
            f"{told}row {row}, column {column} holds {value:g}, but the {name} likelihood needs {self.domain}. "
            "Choose another likelihood or transform the data"
        )


class EntrywiseLikelihood(Likelihood):
    """A likelihood under which the entries of a row are independent given the outputs.

    A subclass gives the log-probability of single entries; sparse rows and missing entries follow from it.

    Examples
    --------
    >>> class Laplace(EntrywiseLikelihood):
    ...     domain = "finite numbers"
    ...
    ...     def entry_log_prob(self, outputs, values, columns):
    ...         return -(values - outputs).abs() - np.log(2.0)
    ...
    ...     def mean(self, outputs, totals=None):
    ...         return outputs
    ...
    ...     def sample(self, outputs, generator, totals=None):
    ...         return from_numpy(generator.laplace(to_numpy(outputs)), outputs)
    ...
    ...     def admits(self, values):
    ...         return np.isfinite(values)
    >>> from corrvae.nn import DenseRows
    >>> Laplace(2).log_prob(torch.zeros(1, 2), DenseRows(torch.tensor([[1.0, -1.0]])))
    tensor([-3.3863])
    """

    @abstractmethod
    def entry_log_prob(
        self,
        outputs: Float[Tensor, "..."],
        values: Float[Tensor, "..."],
        columns: Int[Tensor, " entries"] | slice,
    ) -> Float[Tensor, "..."]:
        """Give the log-probability of each value.

        Parameters
        ----------
        outputs
            The decoder's outputs: a matrix (then `columns` is a slice over all columns), or a vector of picked entries.
        values
            As many values, or a single zero for all.
        columns
            What to index parameters held for each feature with.
        """

    def log_prob(self, outputs: Float[Tensor, "rows features"], target: Rows) -> Float[Tensor, " rows"]:
        """Give the log-probability of each row of `target`, its missing entries left out."""
        if isinstance(target, SparseRows):
            return self._sparse_log_prob(outputs, target)
        entries = self.entry_log_prob(outputs, target.values, slice(None))
        if target.observed is not None:
            entries = entries.masked_fill(~target.observed, 0.0)
        return entries.sum(1)

    def _sparse_log_prob(self, outputs: Tensor, target: SparseRows) -> Tensor:
        """Sum over the entries that are not stored, which are zeros, and over those that are."""
        stored = self.entry_log_prob(target.take(outputs), target.values, target.pattern.columns)
        if target.observed is not None:
            stored = stored.masked_fill(~target.observed, 0.0)
        zeros = self.entry_log_prob(outputs, outputs.new_zeros(()), slice(None))
        # Not as a difference of two sums: where a stored value is far from zero, that would cancel its digits.
        zeros = zeros.reshape(-1).index_fill(0, target.pattern.flat, 0.0).view_as(zeros)
        return zeros.sum(1) + target.sum_entries(stored)


def to_numpy(values: Tensor) -> np.ndarray:
    """Give a tensor's numbers in double precision, for NumPy's random generators."""
    return values.detach().to("cpu", torch.float64).numpy()


def from_numpy(values: np.ndarray, like: Tensor) -> Tensor:
    """Give an array as a tensor of another one's type and device."""
    return torch.from_numpy(np.asarray(values)).to(like)
