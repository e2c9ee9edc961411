"""The points of one side of a block of pairs, with all that an evaluation reads."""

import threading
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.monitor import Monitor
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.exact import exact_pairs
from corrvae.scoring.correlated.kernels import exact as exact_kernels
from corrvae.scoring.pair_vectors import PairVectors
from corrvae.scoring.points import Points

# Pairs whose pre-activations are evaluated at a time.
_PAIRS = 2048


@final
@dataclass(frozen=True, eq=False)
class Side:
    """Groups of equal points, side by side.

    Parameters
    ----------
    offsets, members
        The points of each group, as in `Distinct`.
    mean, stddev, vectors
        One row for each group.
    """

    offsets: Int[np.ndarray, " boundaries"]
    members: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, "groups dim"]
    stddev: Float[np.ndarray, "groups dim"]
    vectors: Float[np.ndarray, "groups width"]

    def __len__(self) -> int:
        return len(self.mean)


@final
class SideReader:
    """Reads sides from points, one thread at a time: the model that prepares vectors is shared.

    Parameters
    ----------
    points
        The points, with vectors.
    groups
        Which of them are equal.
    """

    _turn = threading.Lock()

    def __init__(self, points: Points, groups: Distinct) -> None:
        self.points = points
        self.groups = groups
        self._vectors = vectors_of(points)

    def read(self, groups: Int[np.ndarray, " groups"]) -> Side:
        """Gather these groups."""
        positions = self.groups.representatives[groups]
        begin, end = self.groups.offsets[groups], self.groups.offsets[groups + 1]
        offsets = np.zeros(len(groups) + 1, np.int64)
        np.cumsum(end - begin, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], end - begin)
        with self._turn:
            vectors = np.ascontiguousarray(self._vectors.at(positions).numpy(), np.float32)
        rows = self.points.mean[positions], self.points.stddev[positions]
        return Side(offsets, self.groups.members[places], *rows, vectors)


def vectors_of(points: Points) -> PairVectors:
    """Give the points' vectors, which correlated scores cannot do without."""
    if points.vectors is None:
        raise ValueError("these points carry no vectors for a pair network: their posteriors are independent")
    return points.vectors


def pre_activation(left: Points, right: Points, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs dim"]:
    """Give a for pairs of points, with correlation tanh(a), as `ExactPairs` evaluates it: in float64.

    Parameters
    ----------
    left, right
        Points with vectors of one pair network.
    pairs
        Position on the left, position on the right.

    Examples
    --------
    >>> from corrvae.model import CorrelatedModel
    >>> from corrvae.nn import Decoder, Encoder, FeatureTable, PairBilinear, make_likelihood
    >>> from corrvae.scoring.pair_vectors import PairVectors
    >>> networks = Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6)
    >>> model = CorrelatedModel(*networks, pair_network=PairBilinear(6, 2))
    >>> vectors = PairVectors(model, FeatureTable(np.ones((3, 6))))
    >>> points = Points.of(np.array([[0.0, 0.0], [9.0, 0.0], [2.0, 0.0]]), np.full((3, 2), 0.1), vectors)
    >>> pre_activation(points, points, np.array([[0, 1], [1, 0]])).shape
    (2, 2)
    """
    of_left, of_right = vectors_of(left), vectors_of(right)
    evaluate = exact_pairs(of_left.network).pre_activation
    values = np.empty((len(pairs), of_left.network.n_components))
    for begin in range(0, len(pairs), _PAIRS):
        piece = pairs[begin : begin + _PAIRS]
        (rows, i), (columns, j) = (np.unique(end, return_inverse=True) for end in piece.T)
        vectors_i, vectors_j = of_left.at(rows).numpy(), of_right.at(columns).numpy()
        values[begin : begin + len(piece)] = evaluate(vectors_i, vectors_j, i, j)
    return values


def exact_distances(
    left: Points, right: Points, pairs: Int[np.ndarray, "pairs 2"], monitor: Monitor
) -> Float[np.ndarray, " pairs"]:
    """Give the expected distances of pairs of points by which searches decide.

    Parameters
    ----------
    left, right, pairs
        As in `pre_activation`.
    monitor
        May ask to stop.
    """
    values = np.empty(len(pairs))
    for begin in range(0, len(pairs), _PAIRS):
        monitor.check()
        piece = np.ascontiguousarray(pairs[begin : begin + _PAIRS])
        a = pre_activation(left, right, piece)
        ends = left.mean, left.stddev, right.mean, right.stddev, piece[:, 0], piece[:, 1]
        exact_kernels.distances(*ends, a, values[begin : begin + len(piece)])
    return values


def not_a_number(query: int, candidate: int) -> str:
    """Say that a distance is not a number, and what to look at."""
    where = f"the distance of the query at position {query} and the candidate at position {candidate}"
    return f"{where} is not a number: look for infinite or missing values in their features"
