"""Counts as draws from a softmax over the features."""

from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from corrvae.nn.kernels import choice, sums
from corrvae.nn.likelihoods.base import Likelihood, from_numpy, to_numpy
from corrvae.nn.rows import Rows, SparseRows

# An output that leaves a feature no probability. Not minus infinity, whose softmax over a row without any observed
# feature is not a number.
_NEVER = -1e30


@final
class Multinomial(Likelihood):
    """The row's counts are independent draws from softmax(outputs): log p = sum_k x_k log softmax(outputs)_k.

    The number of draws is taken as given, and the multinomial coefficient, which no parameter changes, is left out:
    this is the probability of the draws in one order. Missing counts condition the draws on the features that were
    observed, that is, the softmax runs over those. A row of zeros has log-probability 0.

    Examples
    --------
    >>> import torch
    >>> from corrvae.nn import DenseRows
    >>> Multinomial(4).log_prob(torch.zeros(1, 4), DenseRows(torch.tensor([[2.0, 0.0, 0.0, 1.0]]))).exp()
    tensor([0.0156])
    """

    domain = "finite numbers that are not negative"

    def log_prob(self, outputs: Float[Tensor, "rows features"], target: Rows) -> Float[Tensor, " rows"]:
        """Give the log-probability of each row of `target`, its missing entries left out."""
        if target.observed is not None:
            missing = _missing(target, target.observed)
            log_probabilities = outputs.masked_fill(missing, _NEVER).log_softmax(1).masked_fill(missing, 0.0)
            return (log_probabilities * target.dense()).sum(1)
        if isinstance(target, SparseRows):
            return _SparseCounts.apply(outputs, target)  # pyright: ignore[reportReturnType]
        return (outputs.log_softmax(1) * target.dense()).sum(1)

    def mean(
        self, outputs: Float[Tensor, "rows features"], totals: Float[Tensor, " rows"] | None = None
    ) -> Float[Tensor, "rows features"]:
        """Give the expected counts, or the probabilities if no totals are given."""
        probabilities = outputs.softmax(1)
        return probabilities if totals is None else probabilities * totals[:, None]

    def sample(
        self,
        outputs: Float[Tensor, "rows features"],
        generator: np.random.Generator,
        totals: Float[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows features"]:
        """Draw counts: as many as the totals say (rounded), one if they are not given."""
        draws = np.ones(len(outputs), dtype=np.int64) if totals is None else np.rint(to_numpy(totals)).astype(np.int64)
        probabilities = to_numpy(outputs.double().softmax(1))
        return from_numpy(generator.multinomial(draws, probabilities), outputs)

    def admits(self, values: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Say of each value whether it is finite and not negative."""
        return (values >= 0) & np.isfinite(values)


def _missing(target: Rows, observed: Tensor) -> Tensor:
    """Where the target is missing, as a mask over rows and columns."""
    if not isinstance(target, SparseRows):
        return ~observed
    mask = observed.new_zeros(target.shape)
    mask.view(-1)[target.pattern.flat] = ~observed
    return mask


class _SparseCounts(torch.autograd.Function):
    """The sum over a row's non-zeros of counts times log softmax.

    The gradient, counts less their total times the softmax, is one dense matrix into which the counts are added.
    """

    @staticmethod
    def forward(ctx, outputs: Tensor, target: SparseRows) -> Tensor:
        ctx.target = target
        values, probabilities = counts_forward(outputs, target)
        ctx.save_for_backward(probabilities)
        return values

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        return counts_backward(gradients[0], ctx.saved_tensors[0], ctx.target), None


def counts_forward(outputs: Tensor, target: SparseRows) -> tuple[Tensor, Tensor]:
    """Give the log-probability of each row of counts without a derivative, and the softmax.

    The target may have more rows than there are outputs: it is read no further.
    """
    if not (outputs.is_cpu and choice.used()):
        target, log_probabilities = _first_rows(target, len(outputs)), outputs.log_softmax(1)
        values = target.sum_entries(target.take(log_probabilities).mul_(target.values))
        return values, log_probabilities.exp()
    probabilities, array = outputs.softmax(1), outputs.numpy()
    values = np.empty(len(array), array.dtype)
    sums.log_likelihood_of_counts(array, probabilities.numpy(), *_entries(target), values)
    return torch.from_numpy(values), probabilities


def counts_backward(gradient: Tensor, probabilities: Tensor, target: SparseRows, total: Tensor | None = None) -> Tensor:
    """Give the gradient with respect to the outputs from that of the log-probabilities; `total` gets its rows' sum."""
    if probabilities.is_cpu and choice.used():
        array = probabilities.numpy()
        into, totals = np.empty_like(array), np.empty(array.shape[1], array.dtype) if total is None else total.numpy()
        sums.counts_gradient(array, *_entries(target), gradient.contiguous().numpy(), into, totals)
        return torch.from_numpy(into)
    target = _first_rows(target, len(probabilities))
    into = probabilities * (-target.sums() * gradient)[:, None]
    into.view(-1).index_add_(0, target.pattern.flat, gradient[target.pattern.row_of] * target.values)
    if total is not None:
        torch.sum(into, 0, out=total)
    return into


def _first_rows(target: SparseRows, count: int) -> SparseRows:
    return target if target.shape[0] == count else target.head(count)


def _entries(target: SparseRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pattern = target.pattern
    return pattern.columns.numpy(), pattern.offsets.numpy(), target.values.numpy()
