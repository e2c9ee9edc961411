"""The interface of likelihoods: distributions of a row of features given the decoder's outputs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from scipy import sparse
from torch import Tensor, nn

from corrvae.nn.rows import Rows, SparseRows

Outputs = Float[Tensor, "rows features"]
RowNumbers = Float[Tensor, " rows"]
Entries = Float[Tensor, "..."]
Columns = Int[Tensor, " entries"] | slice

# Entries looked at together; matrices on disk are read piece by piece.
_PIECE = 1 << 22


class Likelihood(nn.Module, ABC):
    """Distribution of features given the decoder's outputs, one output for each feature.

    Parameters that do not depend on the latent point (a variance, a dispersion) belong to the likelihood and are
    learned with the rest. For another distribution, subclass this or `EntrywiseLikelihood` and pass the class.
    """

    domain: ClassVar[str]
    """What entries must be, in words, for error messages."""
    non_negative: ClassVar[bool] = False
    """Whether entries must not be negative."""
    default_normalize: ClassVar[str] = "none"
    """What ``normalize="auto"`` means for features of this kind."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    @abstractmethod
    def log_prob(self, outputs: Outputs, target: Rows) -> RowNumbers:
        """Return the log-probability of each row of `target`, without its missing entries."""

    @abstractmethod
    def mean(self, outputs: Outputs, totals: RowNumbers | None = None) -> Outputs:
        """Return the expected features; `totals` are the sums of the rows, for likelihoods that condition on them."""

    @abstractmethod
    def sample(self, outputs: Outputs, generator: np.random.Generator, totals: RowNumbers | None = None) -> Outputs:
        """Draw features."""

    def average_outputs(self, means: Float[np.ndarray, " features"]) -> Float[np.ndarray, " features"] | None:
        """Return the outputs under which each feature has its mean over the rows: where a decoder begins.

        ``None`` leaves the decoder as it was drawn.
        """
        return None

    def admits(self, values: Shaped[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
        """Return for each value whether it lies in the domain; the answer for NaN is not used."""
        finite = np.isfinite(values)
        return finite & (values >= 0) if self.non_negative else finite

    def check(self, X: np.ndarray | sparse.spmatrix | sparse.sparray) -> None:
        """Raise a `ValueError` that names row and column of the first entry outside the domain; NaN is skipped."""
        matrix = X if isinstance(X, np.ndarray) else sparse.csr_array(X)
        begin = 0
        for values in stored_pieces(matrix):
            wrong = ~(self.admits(values) | np.isnan(values))
            if wrong.any():
                at = int(wrong.argmax())
                row, column = _locate(matrix, begin + at)
                # scikit-learn expects these words
                prefix = "Negative values in data: " if values[at] < 0 else ""
                raise ValueError(
                    f"{prefix}row {row}, column {column} holds {values[at]:g}, but the {type(self).__name__} "
                    f"likelihood needs {self.domain}. Choose another likelihood or transform the data"
                )
            begin += len(values)


class EntrywiseLikelihood(Likelihood):
    """A likelihood under which the entries of a row are independent given the outputs.

    A subclass defines the log-probability of single entries; sparse rows and missing entries follow from it. An example
    is `examples/custom_likelihood.py`.
    """

    @abstractmethod
    def entry_log_prob(self, outputs: Entries, values: Entries, columns: Columns) -> Entries:
        """Return the log-probability of each value.

        Outputs are a matrix (then `columns` is a slice over all columns) or a vector of picked entries, with as many
        values or a single zero for all; `columns` indexes parameters that are held for each feature.
        """

    def log_prob(self, outputs: Outputs, target: Rows) -> RowNumbers:
        """Return the log-probability of each row of `target`, without its missing entries."""
        columns = target.pattern.columns if isinstance(target, SparseRows) else slice(None)
        entries = self.entry_log_prob(target.take(outputs), target.values, columns)
        if target.observed is not None:
            entries = entries.masked_fill(~target.observed, 0.0)
        sums = target.sum_entries(entries)
        if isinstance(target, SparseRows):  # entries that are not stored are zeros
            zeros = self.entry_log_prob(outputs, outputs.new_zeros(()), slice(None))
            # Not a difference of two sums, which would cancel the digits where a stored value is far from zero.
            zeros = zeros.reshape(-1).index_fill(0, target.pattern.flat, 0.0).view_as(zeros)
            sums = zeros.sum(1) + sums
        return sums


class CountLikelihood(EntrywiseLikelihood):
    """A likelihood of counts whose means are the exponentials of the outputs."""

    domain = "finite numbers that are not negative"
    non_negative = True
    default_normalize = "log1p"

    def average_outputs(self, means: Float[np.ndarray, " features"]) -> Float[np.ndarray, " features"]:
        """Return the logarithm of each mean."""
        return np.log(np.maximum(means, 1e-4))

    def mean(self, outputs: Outputs, totals: RowNumbers | None = None) -> Outputs:
        """Return the mean of each feature."""
        return outputs.exp()


def to_numpy(values: Tensor) -> np.ndarray:
    """Return a tensor as a float64 array, for NumPy's random generators."""
    return values.detach().to("cpu", torch.float64).numpy()


def from_numpy(values: np.ndarray, like: Tensor) -> Tensor:
    """Return an array as a tensor of the type and device of another."""
    return torch.from_numpy(np.asarray(values)).to(like)


def stored_pieces(matrix: np.ndarray | sparse.csr_array) -> Iterator[Shaped[np.ndarray, " entries"]]:
    """Yield the stored entries in reading order, some millions at a time."""
    if isinstance(matrix, np.ndarray):
        step = max(1, _PIECE // max(1, matrix.shape[1]))
        yield from (matrix[begin : begin + step].ravel() for begin in range(0, len(matrix), step))
    else:
        yield from (matrix.data[begin : min(begin + _PIECE, matrix.nnz)] for begin in range(0, matrix.nnz, _PIECE))


def _locate(matrix: np.ndarray | sparse.csr_array, position: int) -> tuple[int, int]:
    """Return row and column of a stored entry."""
    if isinstance(matrix, np.ndarray):
        return divmod(position, matrix.shape[1])
    return int(np.searchsorted(matrix.indptr, position, side="right")) - 1, int(matrix.indices[position])
