"""One evaluation of a pair in float64 that decides whatever the tiles' rounding leaves open."""

import copy
from abc import ABC, abstractmethod
from typing import TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float, Int

from corrvae.nn.bilinear import PairBilinear
from corrvae.nn.metric import PairMetric
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.perceptron import PairPerceptron
from corrvae.scoring.correlated.kernels import exact as kernels

Left: TypeAlias = Float[np.ndarray, "left width"]
Right: TypeAlias = Float[np.ndarray, "right width"]
Places: TypeAlias = Int[np.ndarray, " pairs"]
Values: TypeAlias = Float[np.ndarray, "pairs dim"]


class ExactPairs(ABC):
    """Evaluates pairs in float64 from the prepared vectors and the network's own weights; every thread may call it.

    What it gives for a pair depends on that pair alone, not on its neighbours in the call, and not on the order of its
    two points. So points that are equal to the bit have equal distances to the bit.
    """

    @abstractmethod
    def pre_activation(self, left: Left, right: Right, rows: Places, columns: Places) -> Values:
        """Give a of each pair (row of the vectors on the left, row of those on the right)."""


def exact_pairs(network: PairNetwork) -> ExactPairs:
    """Choose the way for a network."""
    if isinstance(network, PairPerceptron) and len(network.middle) == 0:
        return _ExactPerceptron(network)
    if isinstance(network, PairBilinear):
        return _ExactBilinear(network)
    if isinstance(network, PairMetric):
        return _ExactMetric(network)
    return ExactNetwork(network)


@final
class _ExactPerceptron(ExactPairs):
    def __init__(self, network: PairPerceptron) -> None:
        self._weight = np.ascontiguousarray(values_of(network.last.weight).T * np.float32(0.5))
        self._bias = values_of(network.last.bias)

    def pre_activation(self, left: Left, right: Right, rows: Places, columns: Places) -> Values:
        a = np.empty((len(rows), len(self._bias)))
        halves_i, halves_j = (vectors.reshape(len(vectors), 2, -1) for vectors in (left, right))
        kernels.perceptron(halves_i, halves_j, rows, columns, self._weight, self._bias, a)
        return a


@final
class _ExactBilinear(ExactPairs):
    def __init__(self, network: PairBilinear) -> None:
        self._rank, self._constant = network.rank, values_of(network.constant)

    def pre_activation(self, left: Left, right: Right, rows: Places, columns: Places) -> Values:
        a = np.empty((len(rows), len(self._constant)))
        entries_i, entries_j = (vectors.reshape(len(vectors), 2 * self._rank, -1) for vectors in (left, right))
        kernels.bilinear(entries_i, entries_j, rows, columns, self._constant, a)
        return a


@final
class _ExactMetric(ExactPairs):
    def __init__(self, network: PairMetric) -> None:
        self._start, self._slope = values_of(network.start).astype(np.float64), slope_of(network)

    def pre_activation(self, left: Left, right: Right, rows: Places, columns: Places) -> Values:
        a = np.empty((len(rows), len(self._start)))
        kernels.metric(left, right, rows, columns, self._start, self._slope, a)
        return a


@final
class ExactNetwork(ExactPairs):
    """Any network, as a copy in float64 on the processor, one pair at a time and in both orders."""

    def __init__(self, network: PairNetwork) -> None:
        self.network = copy.deepcopy(network).to("cpu", torch.float64).eval()

    def pre_activation(self, left: Left, right: Right, rows: Places, columns: Places) -> Values:
        """See `ExactPairs.pre_activation`."""
        a = np.empty((len(rows), self.network.n_components))
        first, second = torch.tensor([0]), torch.tensor([1])
        with torch.inference_mode():
            for pair, (row, column) in enumerate(zip(rows, columns, strict=True)):
                both = torch.from_numpy(np.stack([left[row], right[column]]).astype(np.float64))
                # turned round by its rows, so that both orders are calls of the same form
                there = self.network.pre_activation(both, first, second)
                back = self.network.pre_activation(both.flip(0), first, second)
                a[pair] = (0.5 * (there + back)).numpy()
        return a


def values_of(parameter: torch.Tensor) -> np.ndarray:
    """Give a parameter's numbers."""
    return np.ascontiguousarray(parameter.detach().cpu().numpy(), np.float32)


def slope_of(network: PairMetric) -> Float[np.ndarray, " dim"]:
    """Give what a metric network multiplies a squared distance by, in float64."""
    return network.slope.detach().cpu().double().exp().numpy()
