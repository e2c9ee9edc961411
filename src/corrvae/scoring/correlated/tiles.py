"""Expected distances of listed pairs of two sides: one way for each kind of pair network."""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  (numba's products use it; loaded now, it heeds limits on its threads)
import torch
from jaxtyping import Float, Int

from corrvae.monitor import STOP
from corrvae.nn.bilinear import PairBilinear
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.perceptron import PairPerceptron
from corrvae.scoring.correlated.kernels import distances as kernels
from corrvae.scoring.correlated.sides import Side

# Hidden values of a tile: 256 pairs of 1000, a megabyte. Larger tiles gain nothing, tiles of 100 pairs lose a tenth.
_HIDDEN_VALUES = 2**18
# Pairs of a tile under a network that we know nothing of.
_PAIRS = 1024


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


def pair_tiles(network: PairNetwork) -> PairTiles:
    """Choose the fastest way for a network."""
    if isinstance(network, PairPerceptron) and len(network.middle) == 0:
        return PerceptronTiles(network)
    if isinstance(network, PairBilinear):
        return BilinearTiles(network)
    return NetworkTiles(network)


@final
class PerceptronTiles(PairTiles):
    """A perceptron of one hidden layer: hidden values of a tile, one product, and the distances, in one loop."""

    def __init__(self, network: PairPerceptron) -> None:
        self._weight = np.ascontiguousarray(_values(network.last.weight).T * np.float32(0.5))
        self._bias = _values(network.last.bias)
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


@final
class BilinearTiles(PairTiles):
    """A bilinear network: products, tanh and distance of each pair in registers and the first cache."""

    def __init__(self, network: PairBilinear) -> None:
        self._rank = network.rank
        self._constant = _values(network.constant)

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


@final
class NetworkTiles(PairTiles):
    """Any pair network: its own pre-activations, then the distances."""

    def __init__(self, network: PairNetwork) -> None:
        self._network = network
        self._device = next((part.device for part in network.parameters()), torch.device("cpu"))

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
            vectors = torch.from_numpy(np.concatenate([left.vectors, right.vectors])).to(self._device)
            for begin in range(0, len(rows), _PAIRS):
                if control[STOP]:
                    break
                piece = slice(begin, min(begin + _PAIRS, len(rows)))
                first, second = rows[piece].astype(np.int64), columns[piece].astype(np.int64) + len(left)
                pairs = (torch.from_numpy(end).to(self._device) for end in (first, second))
                a = self._network.pre_activation(vectors, *pairs).cpu().numpy()
                a = np.ascontiguousarray(a, np.float32)
                kernels.distances(*ends, rows[piece], columns[piece], a, values[piece])
        return values


def _values(parameter: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(parameter.detach().cpu().numpy(), np.float32)
