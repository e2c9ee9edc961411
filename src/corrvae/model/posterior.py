"""What a model knows of latent points: marginals, correlations of pairs, samples and densities along forests."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from corrvae.graphs.ids import VertexIds, as_array, id_array


class Posterior:
    """Independent normal posteriors of a set of vertices; base class of correlated ones.

    Every marginal is N(mean, diag stddev^2). Every pair of vertices has a correlation in each latent dimension, here 0.
    Together they define a joint distribution along any forest, but not along a graph with cycles.

    Methods take pairs and edges of ids, 0, 1, ... by default. `tau` is the correlation of the prior along an edge, in
    each dimension. `usual_metric` is the score of two points that searches use unless another is named.

    Examples
    --------
    >>> posterior = Posterior(np.zeros((2, 1)), np.ones((2, 1)), ids=["ann", "bob"])
    >>> posterior.correlation([("ann", "bob")])
    array([[0.]])
    >>> posterior.sample(5, random_state=0).shape
    (5, 2, 1)
    """

    is_correlated = False
    usual_metric = "expected_distance"

    def __init__(
        self,
        mean: Float[np.ndarray, "vertices dim"],
        stddev: Float[np.ndarray, "vertices dim"],
        *,
        ids: Sequence[Any] | Shaped[np.ndarray, " ids"] | None = None,
        tau: Float[np.ndarray, " dim"] | None = None,
    ) -> None:
        if not (stddev > 0).all():
            row, column = np.argwhere(~(stddev > 0))[0]
            raise ValueError(f"standard deviations must be positive; vertex {row}, dimension {column} is not")
        self.mean = mean
        self.stddev = stddev
        self.tau = np.zeros(mean.shape[1]) if tau is None else tau
        self._ids = ids

    def __repr__(self) -> str:
        kind = "correlated" if self.is_correlated else "independent"
        return f"Posterior({self.n_vertices:,} vertices, {self.n_components} dimensions, {kind})"

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.mean.shape[0]

    @property
    def n_components(self) -> int:
        """Number of latent dimensions."""
        return self.mean.shape[1]

    @cached_property
    def ids(self) -> Shaped[np.ndarray, " vertices"]:
        """Ids of the vertices. One that was taken twice is listed twice, and cannot be looked up."""
        return np.arange(self.n_vertices) if self._ids is None else id_array(self._ids, "ids")

    @cached_property
    def _vertices(self) -> VertexIds:
        return VertexIds.from_vertices(self.ids)

    @cached_property
    def searchable(self) -> "Posterior":
        """The posterior that searches over all pairs use: this one, unless its correlations cost too much for that."""
        return self

    def positions(self, ids: Any) -> Int[np.ndarray, " ids"]:
        """Return the positions of ids; an unknown id raises a `ValueError` that names it."""
        return self._vertices.locate(ids)

    def distinct_positions(self, ids: Any, name: str) -> Int[np.ndarray, " ids"]:
        """Return the positions of ids; an id that is listed twice raises a `ValueError` that begins by `name`."""
        positions = self.positions(ids)
        values, counts = np.unique(positions, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"{name} holds id {self.ids.tolist()[values[counts > 1][0]]!r} more than once")
        return positions

    def pair_positions(self, pairs: Any) -> Int[np.ndarray, "pairs 2"]:
        """Return the positions of pairs of ids: a list of pairs, or an array or data frame with two columns."""
        columns = as_array(pairs)
        if columns is None:
            listed = list(pairs)
            for number, pair in enumerate(listed):
                if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
                    raise ValueError(f"pair {number} is {pair!r}; each pair must be two ids, as in [(i, j)]")
            firsts, seconds = [pair[0] for pair in listed], [pair[1] for pair in listed]
        elif columns.size == 0:
            firsts, seconds = [], []
        elif columns.ndim == 2 and columns.shape[1] == 2:
            firsts, seconds = columns[:, 0], columns[:, 1]
        else:
            advice = "; a single pair is a list of one, [(i, j)]" if columns.shape == (2,) else ""
            raise ValueError(f"pairs must have two columns, got shape {columns.shape}{advice}")
        places = np.stack([self.positions(firsts), self.positions(seconds)], axis=1)
        loops = np.flatnonzero(places[:, 0] == places[:, 1])
        if len(loops):
            raise ValueError(f"pair {loops[0]} joins {self.ids.tolist()[places[loops[0], 0]]!r} with itself")
        return places

    def take(self, positions: Int[np.ndarray, " taken"]) -> "Posterior":
        """Return the posterior of some vertices, in this order."""
        ids = self.ids[positions]
        return Posterior(self.mean[positions], self.stddev[positions], ids=ids, tau=self.tau)

    def pre_activation(self, positions: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs dim"]:
        """Return a with correlation tanh(a) for pairs of positions, in float64."""
        return np.zeros((len(positions), self.n_components))

    def vectors(self, positions: Int[np.ndarray, " points"]) -> Float[Tensor, "points width"] | None:
        """Return what correlations with other points are computed from; ``None`` if there are none."""
        return None

    def block(
        self, vectors_i: Float[Tensor, "rows width"], vectors_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Return a for every point of one set against every point of another, from their `vectors`."""
        return torch.zeros(len(vectors_i), len(vectors_j), self.n_components)

    def correlation(self, pairs: Any) -> Float[np.ndarray, "pairs dim"]:
        """Return the correlation of pairs of ids, in each latent dimension."""
        return np.tanh(self.pre_activation(self.pair_positions(pairs)))

    def sample(
        self, n_samples: int, random_state: np.random.Generator | int | None = None
    ) -> Float[np.ndarray, "samples vertices dim"]:
        """Draw each vertex from its own marginal, independently of the others."""
        noise = np.random.default_rng(random_state).standard_normal((n_samples, *self.mean.shape))
        return self.mean + self.stddev * noise
