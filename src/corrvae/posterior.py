"""What a model believes about the latent points: marginals, correlations of pairs, samples, densities along forests."""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import log, pi
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.graphs.ids import VertexIds
from corrvae.rooted_forest import RootedForest
from corrvae.vertex_pairs import as_pairs, find_places

PairFunction = Callable[[np.ndarray], np.ndarray]


@final
class Posterior:
    """Normal posteriors of a set of vertices, with a correlation for each pair of them.

    Every marginal is N(mean, diag stddev^2); every pair of vertices has a correlation in each latent dimension.
    Together they define a joint distribution along any forest, but not along a graph with cycles.

    Parameters
    ----------
    mean, stddev
        One row for each vertex.
    pre_activation
        Function from pairs of vertices to a, where the correlation is tanh(a); ``None`` for independent posteriors.
    ids
        Ids of the vertices, if they have some. Methods take pairs and edges as lists or arrays: of places (whole
        numbers, 0 to the number of vertices - 1), or of ids that are not numbers. `locate` finds the places of any ids.

    Examples
    --------
    >>> posterior = Posterior(np.zeros((3, 2)), np.ones((3, 2)), lambda pairs: np.ones((len(pairs), 2)))
    >>> posterior.correlation(np.array([[0, 1]])).round(3)
    array([[0.762, 0.762]])
    >>> posterior.sample_forest(5, np.array([[0, 1], [1, 2]]), 0).shape
    (5, 3, 2)
    >>> Posterior(np.zeros((2, 1)), np.ones((2, 1)), ids=["ann", "bob"]).correlation([("ann", "bob")])
    array([[0.]])
    """

    def __init__(
        self,
        mean: Float[np.ndarray, "vertices dim"],
        stddev: Float[np.ndarray, "vertices dim"],
        pre_activation: PairFunction | None = None,
        *,
        ids: Sequence[Any] | Shaped[np.ndarray, " ids"] | None = None,
    ) -> None:
        if mean.shape != stddev.shape:
            raise ValueError(f"mean has shape {mean.shape}, but stddev has shape {stddev.shape}")
        if not (stddev > 0).all():
            row, column = np.argwhere(~(stddev > 0))[0]
            raise ValueError(f"standard deviations must be positive; vertex {row}, dimension {column} is not")
        self.mean = mean
        self.stddev = stddev
        self._pre_activation = pre_activation
        self.ids = ids
        if ids is not None and len(ids) != len(mean):
            raise ValueError(f"there are {len(ids):,} ids for {len(mean):,} vertices")

    def __repr__(self) -> str:
        kind = "independent" if self._pre_activation is None else "pairwise"
        return f"Posterior({self.n_vertices} vertices, {self.n_components} dimensions, {kind})"

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.mean.shape[0]

    @property
    def n_components(self) -> int:
        """Number of latent dimensions."""
        return self.mean.shape[1]

    def locate(self, pairs: Any) -> Int[np.ndarray, "pairs 2"]:
        """Give the places of pairs of ids, for ids that are numbers too.

        Examples
        --------
        >>> Posterior(np.zeros((2, 1)), np.ones((2, 1)), ids=[7, 5]).locate([(5, 7)])
        array([[1, 0]])
        """
        return find_places(pairs, self._vertices)

    def pre_activation(self, pairs: Any) -> Float[np.ndarray, "pairs dim"]:
        """Give a for pairs of vertices: the inverse hyperbolic tangent of their correlation, in float64."""
        places = as_pairs(pairs, self._vertices)
        if self._pre_activation is None or len(places) == 0:
            return np.zeros((len(places), self.n_components))
        return np.asarray(self._pre_activation(places), dtype=np.float64)

    def correlation(self, pairs: Any) -> Float[np.ndarray, "pairs dim"]:
        """Give the correlation of pairs of vertices, by places or by ids, in each latent dimension."""
        return np.tanh(self.pre_activation(pairs))

    @cached_property
    def _vertices(self) -> VertexIds:
        return VertexIds(None, self.n_vertices) if self.ids is None else VertexIds.from_vertices(self.ids)

    def sample(
        self, n_samples: int, generator: np.random.Generator | int | None = None
    ) -> Float[np.ndarray, "samples vertices dim"]:
        """Draw each vertex from its own marginal, independently of the others; from a generator, or anew from a seed.

        Examples
        --------
        >>> Posterior(np.zeros((3, 2)), np.ones((3, 2))).sample(5).shape
        (5, 3, 2)
        """
        noise = np.random.default_rng(generator).standard_normal((n_samples, *self.mean.shape))
        return self.mean + self.stddev * noise

    def sample_forest(
        self, n_samples: int, edges: Any, generator: np.random.Generator | int | None = None
    ) -> Float[np.ndarray, "samples vertices dim"]:
        """Draw all vertices jointly along a forest: roots from their marginals, then each vertex given its parent.

        In units of its standard deviation, a vertex is rho times its parent plus sqrt(1 - rho^2) times noise.

        Parameters
        ----------
        n_samples
            Number of joint draws.
        edges
            The forest; vertices without an edge are drawn on their own.
        generator
            Source of randomness, or a seed.
        """
        edges = as_pairs(edges, self._vertices)
        forest = RootedForest.of(self.n_vertices, edges)
        a = self.pre_activation(edges)
        standard = np.random.default_rng(generator).standard_normal((n_samples, *self.mean.shape))
        for level in forest.levels:
            correlation, rest = np.tanh(a[level.edges]), _sech(a[level.edges])
            standard[:, level.children] *= rest
            standard[:, level.children] += correlation * standard[:, level.parents]
        return self.mean + self.stddev * standard

    def log_density(
        self, z: Float[np.ndarray, "*samples vertices dim"], edges: Any
    ) -> Float[np.ndarray, "*samples"] | np.floating:
        """Give the joint log-density along a forest: marginals, and for each edge log q_ij / (q_i q_j).

        In standard units the latter is log cosh a - ((x - y)^2 expm1(2a) + (x + y)^2 expm1(-2a)) / 8, which needs no
        difference of numbers close to each other.
        """
        edges = as_pairs(edges, self._vertices)
        RootedForest.of(self.n_vertices, edges)
        a = self.pre_activation(edges)
        standard = (np.asarray(z, dtype=np.float64) - self.mean) / self.stddev
        marginal = -0.5 * standard**2 - np.log(self.stddev) - 0.5 * log(2.0 * pi)
        x, y = standard[..., edges[:, 0], :], standard[..., edges[:, 1], :]
        pair = _log_cosh(a) - ((x - y) ** 2 * np.expm1(2.0 * a) + (x + y) ** 2 * np.expm1(-2.0 * a)) / 8.0
        return marginal.sum((-2, -1)) + pair.sum((-2, -1))


def _log_cosh(a: np.ndarray) -> np.ndarray:
    size = np.abs(a)
    near = 0.5 * np.log1p(np.sinh(np.minimum(size, 1.0)) ** 2)
    return np.where(size < 1.0, near, size + np.log1p(np.exp(-2.0 * size)) - log(2.0))


def _sech(a: np.ndarray) -> np.ndarray:
    """1 / cosh a = sqrt(1 - tanh^2 a), without overflow."""
    return np.exp(-_log_cosh(a))
