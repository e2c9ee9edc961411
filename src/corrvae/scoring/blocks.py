"""Costs of every query against every candidate in float32, a rectangle at a time, with a bound of their error."""

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from typing import final

import numpy as np
import torch
from jaxtyping import Float

from corrvae.scoring.kernels import log_odds
from corrvae.scoring.kernels.selection import STRETCH
from corrvae.scoring.points import Points

# Twice the relative error of one rounding in float32; errors that are far below the smallest numbers squared.
_EPSILON, _TINY = float(np.finfo(np.float32).eps), 1e-40
# Roundings of a term before it enters a sum, and of the sum afterwards.
_ROUNDINGS = 16


class Blocks(ABC):
    """Costs of pairs of points, where lower is better."""

    @abstractmethod
    def costs(self, rows: slice, columns: slice, pool: Executor) -> Float[np.ndarray, "rows columns"]:
        """Give the costs of a rectangle of pairs; it may be overwritten by the next call."""

    @abstractmethod
    def error(self, rows: slice, columns: slice) -> Float[np.ndarray, "rows stretches"]:
        """Give how far the costs of each query with a stretch of candidates can be from those in float64."""


@final
class ProductBlocks(Blocks):
    """Costs that are inner products of two rows.

    Parameters
    ----------
    left, right
        The rows of queries and of candidates.
    left_magnitude, right_magnitude
        Their sum for a query and a candidate bounds the sum of the products' absolute values.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> blocks = ProductBlocks(np.eye(2, dtype=np.float32), np.ones((3, 2), np.float32), np.ones(2), np.zeros(3))
    >>> with ThreadPoolExecutor(1) as pool:
    ...     blocks.costs(slice(0, 1), slice(0, 3), pool)
    array([[1., 1., 1.]], dtype=float32)
    """

    def __init__(
        self,
        left: Float[np.ndarray, "queries width"],
        right: Float[np.ndarray, "candidates width"],
        left_magnitude: Float[np.ndarray, " queries"],
        right_magnitude: Float[np.ndarray, " candidates"],
    ) -> None:
        self._left, self._right = torch.from_numpy(left), torch.from_numpy(right)
        self._magnitudes, self._rounding = (left_magnitude, right_magnitude), (left.shape[1] + _ROUNDINGS) * _EPSILON
        self._space = torch.empty(0, dtype=self._left.dtype)

    def costs(self, rows: slice, columns: slice, pool: Executor) -> Float[np.ndarray, "rows columns"]:
        """Give the costs of a rectangle of pairs; it may be overwritten by the next call."""
        left, right = self._left[rows], self._right[columns]
        if torch.get_float32_matmul_precision() != "highest":  # torch may then round the factors to bfloat16
            return left.numpy() @ right.numpy().T
        size = len(left) * len(right)
        if len(self._space) < size:
            self._space = torch.empty(size, dtype=self._left.dtype)
        out = self._space[:size].view(len(left), len(right))
        return torch.mm(left, right.T, out=out).numpy()

    def error(self, rows: slice, columns: slice) -> Float[np.ndarray, "rows stretches"]:
        """Give how far the costs of each query with a stretch of candidates can be from those in float64."""
        left, right = self._magnitudes[0][rows], largest_in_stretches(self._magnitudes[1][columns])
        return self._rounding * (left[:, None] + right) + _TINY


@final
class LogOddsBlocks(Blocks):
    """Minus the link log-odds.

    Parameters
    ----------
    queries, candidates
        The points.
    tau
        Correlation of linked points, in each dimension.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> points = Points.of(np.zeros((2, 3)), np.ones((2, 3)))
    >>> with ThreadPoolExecutor(1) as pool:
    ...     LogOddsBlocks(points, points, np.full(3, 0.9)).costs(slice(0, 1), slice(0, 2), pool)
    array([[0., 0.]], dtype=float32)
    """

    def __init__(self, queries: Points, candidates: Points, tau: Float[np.ndarray, " dim"]) -> None:
        size = np.abs(tau)
        turned = np.where(tau < 0, -1.0, 1.0).astype(np.float32)
        self._mean, self._variance = queries.mean, _bounded_variance(queries)
        self._other_mean = np.ascontiguousarray((turned * candidates.mean).T)
        self._other_variance = np.ascontiguousarray(_bounded_variance(candidates).T)
        self._tau = size
        self._floor = (1.0 - size) * (1.0 + size)
        # Powers of two are split off before a product of factors can leave the normal numbers.
        self._group = max(1, int(80.0 / max(1.0, -np.log(self._floor.min(initial=1.0)))))
        self._space = np.empty(0, np.float32)

    def costs(self, rows: slice, columns: slice, pool: Executor) -> Float[np.ndarray, "rows columns"]:
        """Give the costs of a rectangle of pairs; it may be overwritten by the next call."""
        mean, variance = self._mean[rows], self._variance[rows]
        shape = len(mean), columns.stop - columns.start
        if len(self._space) < shape[0] * shape[1]:
            self._space = np.empty(shape[0] * shape[1], np.float32)
        block = self._space[: shape[0] * shape[1]].reshape(shape)

        def fill(piece: slice) -> None:
            parts = mean[piece], variance[piece], self._other_mean, self._other_variance
            log_odds.fill_block(*parts, columns.start, self._tau, self._group, block[piece])

        list(pool.map(fill, pieces(len(mean))))
        return block

    def error(self, rows: slice, columns: slice) -> Float[np.ndarray, "rows stretches"]:
        """Bound the rounding by the absolute values of all terms: those of means at the largest of a stretch."""
        largest = largest_in_stretches(np.abs(self._other_mean[:, columns])).astype(np.float64)
        weights = 2.0 / (self._floor + self._tau**2 * self._variance[rows])
        squares = (np.square(self._mean[rows], dtype=np.float64) * weights).sum(axis=1, keepdims=True)
        dim = len(self._tau)
        rest = 1.0 - np.log(self._floor).sum() + dim
        return (dim + _ROUNDINGS) * _EPSILON * (squares + weights @ largest**2 + rest) + _TINY


def pieces(n_rows: int) -> list[slice]:
    """Cut the rows of a block into a few pieces for each thread.

    Examples
    --------
    >>> pieces(0)
    []
    """
    size = max(1, -(-n_rows // (4 * torch.get_num_threads())))
    return [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]


def largest_in_stretches(values: Float[np.ndarray, "*shape columns"]) -> Float[np.ndarray, "*shape stretches"]:
    """Give the largest value in each stretch of columns that searches look at together.

    Examples
    --------
    >>> largest_in_stretches(np.arange(100.0))
    array([63., 99.])
    """
    return np.maximum.reduceat(values, np.arange(0, values.shape[-1], STRETCH), axis=-1)


def _bounded_variance(points: Points) -> np.ndarray:
    return np.minimum(np.square(points.stddev), np.float32(1.0))
