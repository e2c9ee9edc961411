"""What kind of numbers features are, and the likelihood that suits them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import sparse

from corrvae.shards.matrix import ShardedMatrix

# From this share of zeros on, features are what a row has of many things: sets, counts, ratings.
_MANY_ZEROS = 0.5
# Counts have zeros among them; measurements that happen to be whole numbers hardly have any.
_SOME_ZEROS = 0.02
# Draws from fewer things than this tell little of a row.
_FEWEST_THINGS = 20
_CELLS = 1 << 22


@final
@dataclass(frozen=True)
class Choice:
    """A likelihood, and why.

    Attributes
    ----------
    likelihood
        Its name.
    reason
        What the features are.
    """

    likelihood: str
    reason: str


def choose_likelihood(matrix: np.ndarray | sparse.csr_array | ShardedMatrix) -> Choice:
    """Choose a likelihood by the numbers of a table; missing ones (NaN) do not count.

    ======================================================  =====================
    numbers                                                 likelihood
    ======================================================  =====================
    some are negative                                       gaussian
    half or more are zeros, in 20 columns or more           multinomial
    only 0 and 1                                            bernoulli
    whole numbers, some of them zeros                       negative_binomial
    any others                                              gaussian
    ======================================================  =====================

    Examples
    --------
    >>> choose_likelihood(np.array([[0.0, 1.0], [1.0, 1.0]]))
    Choice(likelihood='bernoulli', reason='all features are 0 or 1')
    """
    facts = _look_at(matrix)
    n_columns = int(matrix.shape[1])  # pyright: ignore[reportOptionalSubscript]
    if facts.negative:
        return Choice("gaussian", "some features are negative")
    kind = "0 or 1" if facts.binary else "whole numbers from 0 up" if facts.whole else "numbers from 0 up"
    if facts.zeros >= _MANY_ZEROS and n_columns >= _FEWEST_THINGS:
        return Choice("multinomial", f"all features are {kind}, and {_percent(facts.zeros)} of them are 0")
    if facts.binary:
        return Choice("bernoulli", f"all features are {kind}")
    if facts.whole and facts.zeros >= _SOME_ZEROS:
        return Choice("negative_binomial", f"all features are {kind}, as counts are")
    if facts.whole:
        return Choice("gaussian", "all features are whole numbers, but hardly any is 0, unlike counts")
    return Choice("gaussian", "the features are real numbers")


@final
@dataclass(frozen=True)
class _Facts:
    negative: bool
    binary: bool
    whole: bool
    zeros: float


def _look_at(matrix: np.ndarray | sparse.csr_array | ShardedMatrix) -> _Facts:
    negative, binary, whole = False, True, True
    n_rows, n_columns = matrix.shape  # pyright: ignore[reportGeneralTypeIssues]
    n_zeros = n_known = int(n_rows) * int(n_columns)
    for piece in _stored(matrix):
        numbers = piece[~np.isnan(piece)]
        n_known -= len(piece) - len(numbers)
        n_zeros -= len(piece) - int((numbers == 0).sum())
        negative |= bool((numbers < 0).any())
        binary &= bool(((numbers == 0) | (numbers == 1)).all())
        whole &= bool((numbers == np.rint(numbers)).all())
    return _Facts(negative, binary, whole, n_zeros / max(1, n_known))


def _stored(matrix: np.ndarray | sparse.csr_array | ShardedMatrix) -> Iterator[np.ndarray]:
    """Give the entries that are stored, some at a time."""
    if isinstance(matrix, ShardedMatrix):
        yield from (piece.data for _, piece in matrix.pieces())
    elif isinstance(matrix, sparse.csr_array):
        yield from (matrix.data[begin : begin + _CELLS] for begin in range(0, len(matrix.data), _CELLS))
    else:
        step = max(1, _CELLS // matrix.shape[1])
        yield from (matrix[begin : begin + step].ravel() for begin in range(0, len(matrix), step))


def _percent(share: float) -> str:
    # rounded down, so that all that is not zero is seen
    return f"{int(share * 1000) / 10:g} %"
