"""Expected distances of listed pairs of two sides, and their rounding errors: one way for each kind of pair network."""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  (numba's products use it; loaded now, it heeds limits on its threads)
import torch
from jaxtyping import Float, Int

from corrvae.monitor import STOP
from corrvae.nn.bilinear import PairBilinear
from corrvae.nn.metric import PairMetric
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.perceptron import PairPerceptron
from corrvae.scoring.correlated.exact import ExactNetwork, slope_of, values_of
from corrvae.scoring.correlated.kernels import distances as kernels
from corrvae.scoring.correlated.sides import Side

# Hidden values of a tile: 256 pairs of 1000, a megabyte. Larger tiles gain nothing, tiles of 100 pairs lose a tenth.
_HIDDEN_VALUES = 2**18
# Pairs of a tile under a network that we know nothing of.
_PAIRS = 1024
# Half the distance between 1 and the next number of float32.
_UNIT = 2.0**-24
# How many times its mean-square size a sum of rounding errors may reach: beyond, with a probability under 3e-14.
_DEVIATIONS = 8.0
# No t / cosh(t)^2 is larger than this: what a relative error of t may do to tanh(t).
_STEEPEST = 0.448
# Between this and its inverse a slope neither overflows nor underflows with anything that matters.
_SMALLEST_SLOPE = 1e-20
# What a network that we know nothing of is trusted to, in a, when it works in float64.
_TRUSTED = 1e-8


class PairTiles(ABC):
    """Evaluates the expected distance of pairs; every thread may call it."""

    @abstractmethod
    def distances(
        self,
        left: Side,
        right: Side,
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
        control: Int[np.ndarray, "2"],
    ) -> Float[np.ndarray, " pairs"]:
        """Give the distance of each pair (row on the left, column on the right), in float32.

        It lies between the bounds for the same points. Incomplete once ``control`` asks to stop.
        """

    @abstractmethod
    def factors(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """Give numbers of each point as a left and as a right end: their product bounds what rounding in a does.

        That is, the change of a pair's distance through the rounding of its pre-activation a. Since 1 - tanh(a) changes
        by no more than a does, it is at most the sum of 2 s_i s_j times the error of a over the dimensions.
        """

    def errors(
        self,
        left: Side,
        right: Side,
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
        values: Float[np.ndarray, " pairs"],
    ) -> Float[np.ndarray, " pairs"]:
        """Bound how far each of the distances may be from the one that `ExactPairs` gives.

        Once a is there, what is left is a sum of `dim` terms, none negative, each right to fewer than 12 units.
        """
        found = np.empty(len(rows))
        share = 1.01 * (left.mean.shape[1] + 12) * _UNIT
        kernels.errors(values, rows, columns, self.factors(left)[0], self.factors(right)[1], share, found)
        return found


def pair_tiles(network: PairNetwork) -> PairTiles:
    """Choose the fastest way for a network."""
    if isinstance(network, PairPerceptron) and len(network.middle) == 0:
        return PerceptronTiles(network)
    if isinstance(network, PairBilinear):
        return BilinearTiles(network)
    if isinstance(network, PairMetric):
        return MetricTiles(network)
    return NetworkTiles(network)


@final
class PerceptronTiles(PairTiles):
    """A perceptron of one hidden layer: hidden values of a tile, one product, and the distances, in one loop.

    The bound on its errors is probabilistic. A bound for the worst case, in which all roundings conspire, grows with
    the width H of the layer and is about 40 times wider than anything that occurs: too wide to decide anything. So
    rounding errors are taken as independent and of mean zero. Each partial sum of a product is at most |h| |w_k| +
    |b_k|, hence the weighted sum of all the errors has a size of u sqrt(H) (|h| |w| + |b|) |c|, with c_k = 2 s_ik s_jk,
    and rounding the hidden values adds 2 u |h| |w_h| |c|. Eight times that is the bound; by Hoeffding's inequality an
    error goes beyond it with a probability under 3e-14. |h| is at most the sum of the lengths of both points' halves,
    and |c| at most 2 q_i q_j with q the fourth root of the sum of s^4.
    """

    def __init__(self, network: PairPerceptron) -> None:
        self._weight = np.ascontiguousarray(values_of(network.last.weight).T * np.float32(0.5))
        self._bias = values_of(network.last.bias)
        self._tile = int(np.clip(_HIDDEN_VALUES // len(self._weight), 32, 512)) // 8 * 8

    def distances(
        self,
        left: Side,
        right: Side,
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
        control: Int[np.ndarray, "2"],
    ) -> Float[np.ndarray, " pairs"]:
        """See `PairTiles.distances`."""
        values = np.empty(len(rows), np.float32)
        halves_i, halves_j = (side.vectors.reshape(len(side), 2, -1) for side in (left, right))
        ends = left.mean, left.stddev, halves_i, right.mean, right.stddev, halves_j
        kernels.perceptron_distances(
            *ends, rows, columns, self._weight, self._bias, max(1, min(self._tile, len(rows))), values, control
        )
        return values

    def factors(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """See `PairTiles.factors`."""
        width = np.sqrt(len(self._weight) + 8.0)
        weight = self._weight.astype(np.float64)
        scale = width * np.sqrt((weight**2).sum(0).max()) + 2.0 * np.sqrt((weight**2).sum(1).max())
        halves = side.vectors.reshape(len(side), 2, -1)
        size = scale * np.sqrt(np.einsum("phk,phk->ph", halves, halves, dtype=np.float64)).sum(1)
        size += 0.5 * width * abs(self._bias).max(initial=0)
        fourth = np.sqrt(np.sqrt((side.stddev.astype(np.float64) ** 4).sum(1)))
        rounding = _UNIT * np.square(side.stddev, dtype=np.float64).sum(1) ** 0.5
        unit = 2.0 * _DEVIATIONS * _UNIT
        left = np.stack([unit * size * fourth, unit * fourth, rounding], axis=1)
        return left, np.stack([fourth, size * fourth, rounding / _UNIT], axis=1)


@final
class BilinearTiles(PairTiles):
    """A bilinear network: products, exponentials and distance of each pair in registers and the first cache.

    A sum of so few terms has a bound for the worst case that is of use: (2 rank + 3) units of |x_ik| |x_jk| + |c_k|,
    where x_ik holds the entries of a point in dimension k and c the constant. Weighted by 2 s_ik s_jk and summed over
    k, that is at most the product of the lengths of the vectors s_ik |x_ik|.
    """

    def __init__(self, network: PairBilinear) -> None:
        self._rank = network.rank
        self._constant = values_of(network.constant)

    def distances(
        self,
        left: Side,
        right: Side,
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
        control: Int[np.ndarray, "2"],
    ) -> Float[np.ndarray, " pairs"]:
        """See `PairTiles.distances`."""
        values = np.empty(len(rows), np.float32)
        signed, entries = (side.vectors.reshape(len(side), 2 * self._rank, -1) for side in (left, right))
        signed = signed.copy()
        signed[:, self._rank :] *= np.float32(-1)
        ends = left.mean, left.stddev, signed, right.mean, right.stddev, entries
        kernels.bilinear_distances(*ends, rows, columns, self._constant, values, control)
        return values

    def factors(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """See `PairTiles.factors`."""
        entries = side.vectors.reshape(len(side), 2 * self._rank, -1)
        squares = np.einsum("pek,pek->pk", entries, entries, dtype=np.float64)
        variance = np.square(side.stddev, dtype=np.float64)
        of_entries, of_spread = np.sqrt((variance * squares).sum(1)), np.sqrt(variance.sum(1))
        unit = 2.0 * (2 * self._rank + 3) * _UNIT
        left = np.stack([unit * of_entries, (unit * abs(self._constant).max(initial=0) + _UNIT) * of_spread], axis=1)
        return left, np.stack([of_entries, of_spread], axis=1)


@final
class MetricTiles(PairTiles):
    """A metric network: squared distance of the images, exponentials and distance of each pair in registers.

    The bound is for the worst case, and does not grow with the images. Of x = c g, with g the squared distance of two
    images of width m, each term has rounded its difference (twice, by the square) and its square, g has added m terms,
    none negative, and c and the product have rounded once each: in any order of summation x is right to m + 4 units of
    itself. Where x is large that is a large error of a = b - x, but tanh is flat there: between x and its rounded value
    tanh(b - x) changes by no more than the relative error times the largest t / cosh(b - t)^2 over t >= 0. With
    t = b + r that is at most max(b, 0) + max r / cosh(r)^2. Rounding a once more is a relative error of a itself, for
    which the same holds with b = 0. All is weighted by 2 s_ik s_jk and summed over k, hence at most the product of the
    lengths of two vectors. No change is beyond 2, which also stands for slopes that float32 cannot be trusted with.
    """

    def __init__(self, network: PairMetric) -> None:
        self._start, slope = values_of(network.start), slope_of(network)
        self._slope = slope.clip(_SMALLEST_SLOPE, 1 / _SMALLEST_SLOPE).astype(np.float32)
        relative = 1.01 * _UNIT * (network.n_components + 4)
        change = relative * (self._start.clip(0).astype(np.float64) + _STEEPEST) + 1.01 * _UNIT * _STEEPEST
        trusted = (slope > _SMALLEST_SLOPE) & (slope < 1 / _SMALLEST_SLOPE)
        self._change = np.where(trusted, np.minimum(change, 2.0), 2.0)

    def distances(
        self,
        left: Side,
        right: Side,
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
        control: Int[np.ndarray, "2"],
    ) -> Float[np.ndarray, " pairs"]:
        """See `PairTiles.distances`."""
        values = np.empty(len(rows), np.float32)
        ends = left.mean, left.stddev, left.vectors, right.mean, right.stddev, right.vectors
        kernels.metric_distances(*ends, rows, columns, self._start, self._slope, values, control)
        return values

    def factors(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """See `PairTiles.factors`."""
        length = np.sqrt((2.0 * self._change * np.square(side.stddev, dtype=np.float64)).sum(1))[:, None]
        return length, length


@final
class NetworkTiles(PairTiles):
    """Any pair network: its own pre-activations in float64, where they are trusted to 1e-8, then the distances."""

    def __init__(self, network: PairNetwork) -> None:
        self._network = ExactNetwork(network).network

    def distances(
        self,
        left: Side,
        right: Side,
        rows: Int[np.ndarray, " pairs"],
        columns: Int[np.ndarray, " pairs"],
        control: Int[np.ndarray, "2"],
    ) -> Float[np.ndarray, " pairs"]:
        """See `PairTiles.distances`."""
        values = np.empty(len(rows), np.float32)
        ends = left.mean, left.stddev, right.mean, right.stddev
        with torch.inference_mode():
            vectors = torch.from_numpy(np.concatenate([left.vectors, right.vectors])).double()
            for begin in range(0, len(rows), _PAIRS):
                if control[STOP]:
                    break
                piece = slice(begin, min(begin + _PAIRS, len(rows)))
                first, second = rows[piece].astype(np.int64), columns[piece].astype(np.int64) + len(left)
                a = self._network.pre_activation(vectors, torch.from_numpy(first), torch.from_numpy(second))
                a = np.ascontiguousarray(a.numpy(), np.float32)
                kernels.distances(*ends, rows[piece], columns[piece], a, values[piece])
        return values

    def factors(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """See `PairTiles.factors`. An a that is rounded to float32 changes tanh(a) by less than half a unit."""
        spread = np.sqrt(np.square(side.stddev, dtype=np.float64).sum(1))[:, None]
        return (2.0 * _TRUSTED + _UNIT) * spread, spread
