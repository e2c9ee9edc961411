"""Expected distances of all pairs of points under a correlated posterior, each evaluated once."""

from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae import CorrelatedVAE
from corrvae.monitor import Monitor, watch
from corrvae.nn.features import FeatureTable
from corrvae.scoring.correlated.sweep import Block, Chosen, Estimates, Goal, Sweep
from corrvae.scoring.neighbors import MEMORY
from corrvae.scoring.pair_vectors import PairVectors
from corrvae.scoring.points import Points
from corrvae.tasks import embedding_distances
from corrvae.tasks.scorers import BlockDistances


def expected_distances(model: CorrelatedVAE, *, progress: bool | None = False) -> BlockDistances:
    """Give expected squared distances between the training rows of a fitted model, some rows against all.

    With a pairwise posterior, every pair is evaluated beforehand and half the n-by-n matrix is held, in float32.

    Parameters
    ----------
    model
        The model; a pairwise one with its features.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> expected_distances(model)(np.array([3, 4])).shape
    (2, 30)
    """
    if model.model_.pair_network is None:
        return embedding_distances(model.embedding_, model.stddev_)
    if model.features_ is None:
        raise ValueError("correlations need the features of training, which this model was saved without")
    vectors = PairVectors(model.model_, FeatureTable(model.features_, missing=model.missing == "mask"))
    points = Points.of(model.embedding_, model.stddev_, vectors)
    held: _Held = watch(lambda monitor: _evaluate(points, monitor), progress=progress)
    return held.distances


def _evaluate(points: Points, monitor: Monitor) -> "_Held":
    sweep = Sweep(points, points, same=True, memory=MEMORY, monitor=monitor)
    groups = np.empty(len(points), np.int64)
    sizes = np.diff(sweep.left_groups.offsets)
    groups[sweep.left_groups.members] = np.repeat(np.arange(len(sizes)), sizes)
    held = _Held(groups, len(sizes))
    sweep.run("distances of all pairs", held)
    return held


@final
class _Held(Goal):
    """The upper triangle, diagonal included, of the distances between groups of equal points.

    Blocks never overlap, so threads may write at the same time.
    """

    def __init__(self, groups: Int[np.ndarray, " points"], n_groups: int) -> None:
        self._groups = groups
        # where the row of each group would begin if it began at column 0
        number = np.arange(n_groups)
        self._begins = number * n_groups - number * (number + 1) // 2
        self._values = np.empty(n_groups * (n_groups + 1) // 2, np.float32)

    def choose(self, block: Block) -> Chosen:
        """List all pairs."""
        shape = len(block.rows), len(block.columns)
        rows, columns = np.triu_indices(shape[0]) if block.diagonal else np.indices(shape).reshape(2, -1)
        return Chosen(rows.astype(np.int64), columns.astype(np.int64), np.empty((0, 0), np.float32))

    def settle(self, block: Block, chosen: Chosen, estimates: Estimates) -> None:
        """Keep the distances of a block."""
        self._values[self._places(block.rows[chosen.rows], block.columns[chosen.columns])] = estimates.values

    def distances(self, rows: np.ndarray) -> Float[np.ndarray, "rows points"]:
        """Give the distances of some points to all; 0 to themselves."""
        block = self._values[self._places(self._groups[rows, None], self._groups)]
        block[np.arange(len(rows)), rows] = 0.0
        return block

    def _places(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return self._begins[np.minimum(first, second)] + np.maximum(first, second)
