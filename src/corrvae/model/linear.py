"""The linear model in closed form: directions in which the two ends of an edge agree, and how much.

With linear networks and Gaussian noise CVAE_ind is the two-covariance model (PLDA): in the coordinates z = W'(y - mean)
that solve one generalised eigenproblem, the ends of an edge have correlation rho_k in dimension k and none between
dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh

from corrvae.model.batch import TrainingData
from corrvae.nn import InputTransform
from corrvae.nn.rows import SparseRows

# Correlations are kept between these, so that standard deviations are positive and scores finite.
_LEAST, _MOST = 1e-3, 0.999
# Edges that moments are taken over. Where features are drawn anew, draws for so many edges in all, but not more than so
# many draws, each for so many edges at a time.
_EDGES, _DRAWN_EDGES, _MOST_DRAWS, _BLOCK = 20_000, 60_000, 40, 50
# Up to so many features all are used; of more, so many leading singular directions.
_FEATURES, _DIRECTIONS = 3000, 500
# Shares of the mean variance of a feature, to choose from on edges held out: one in so many, up to so many, and
# so few that half of all share no end with them. Of fewer edges than these none is, and the third share is taken.
_RIDGES = (0.01, 0.05, 0.25, 1.0)
_SHARE, _MOST_HELD_OUT, _FEWEST_EDGES = 5, 1000, 100


@final
@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Coordinates z = (y - mean)' W of variance 1, and the correlation of each across an edge, in descending order.

    Columns of the `directions` W are dimensions; `mean` is that of y.
    """

    directions: Float[np.ndarray, "features dim"]
    mean: Float[np.ndarray, " features"]
    correlation: Float[np.ndarray, " dim"]

    def marginals(self, tau: Float[np.ndarray, " dim"] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scale, standard deviation and tau of each dimension, under which log-odds are the linear model's.

        A posterior N(sqrt(u) z, 1 - u) under the prior correlation tau has the log-odds of correlation rho = tau u.

        The default of tau is the root of rho, which is then shared evenly by tau and u.
        """
        tau = np.sqrt(self.correlation) if tau is None else tau
        u = np.clip(self.correlation / tau, _LEAST, _MOST)
        return np.sqrt(u), np.sqrt(1.0 - u), tau


def solve_linear(
    between: Float[np.ndarray, "features features"],
    total: Float[np.ndarray, "features features"],
    mean: Float[np.ndarray, " features"],
    n_components: int,
    *,
    ridge: float,
) -> LinearSolution:
    """Solve between w = rho (total + ridge tr(total) / m I) w for the largest rho.

    `between` and `total` are the covariances of the two ends of an edge, and of one end, of m features.
    """
    m = len(mean)
    total = total + ridge * np.trace(total) / m * np.eye(m)
    n_components = min(n_components, m)
    rho, directions = eigh(between, total, subset_by_index=[m - n_components, m - 1])
    return LinearSolution(directions[:, ::-1], mean, np.clip(rho[::-1], _LEAST, _MOST))


def solve_edges(data: TrainingData, inputs: InputTransform, n_components: int, *, seed: int = 0) -> LinearSolution:
    """Solve the linear model of a graph from the moments across its edges and of their ends.

    Both are weighted by the edges' spanning weights. Some edges, which share no end with those solved from, tell the
    ridge under which they have most mutual information, and the variances and correlations of the dimensions: those
    solved from show too much, the more the later the dimension. The directions are then solved from all edges. Of wide
    tables moments are taken in the leading singular directions of the rows, which stay sparse.
    """
    if data.edges is None or not len(data.edges):
        raise ValueError("the linear model is solved from edges, and there are none between rows that are trained on")
    chosen = np.random.default_rng(seed).permutation(len(data.edges))[:_EDGES]
    edges, weights = data.edges[chosen], np.ones(len(chosen)) if data.weights is None else data.weights[chosen]
    n_draws = 1 if data.augment is None else min(ceil(_DRAWN_EDGES / len(edges)), _MOST_DRAWS)
    n_held = min(len(edges) // _SHARE, _MOST_HELD_OUT) if len(edges) >= _FEWEST_EDGES else 0
    while 2 * (touched := np.isin(edges, edges[:n_held]).any(axis=1)).sum() > len(edges):
        n_held //= 2
    is_held = np.arange(len(edges)) < n_held
    masks = ~touched, is_held, touched & ~is_held
    basis, step, sums = None, 0, [_Sums() for _ in masks]
    for part, found in list(zip(map(np.flatnonzero, masks), sums, strict=True)) * n_draws:
        if not len(part):
            continue
        ends = []
        for block in np.array_split(part, ceil(len(part) / _BLOCK)):
            ends.append(_ends(data, inputs, edges[block], step))
            step += 1
        left, right = (_stack(side) for side in zip(*ends, strict=True))
        if data.table.shape[1] > _FEATURES:
            basis = _leading_directions(_stack([left, right]), seed) if basis is None else basis
            left, right = left @ basis, right @ basis
        found.add(left, right, weights[part])
    fitted, held, others = sums
    everything = fitted + held + others
    mean = everything.covariances()[0]
    size = len(mean) / data.table.shape[1]

    def solve(moments: _Sums, ridge: float) -> LinearSolution:
        mean, between, total = moments.covariances()
        return solve_linear(between, total, mean, n_components, ridge=ridge * size)

    if not held.weight:
        solution = solve(everything, _RIDGES[2])
    else:
        tried = {ridge: _shrink(solve(fitted, ridge), held) for ridge in _RIDGES}
        ridge = max(tried, key=lambda ridge: -np.log1p(-np.square(tried[ridge][0])).sum())
        correlation, variance = tried[ridge]
        directions = solve(everything, ridge).directions[:, : len(variance)] / np.sqrt(variance)
        solution = LinearSolution(directions, mean, correlation)
    if basis is None:
        return solution
    return LinearSolution(basis @ solution.directions, basis @ solution.mean, solution.correlation)


@final
@dataclass(eq=False)
class _Sums:
    """Weighted sums over edges: of both ends, of their product, and of the square of each."""

    weight: Any = 0.0
    mean: Any = 0.0
    cross: Any = 0.0
    own: Any = 0.0

    def add(self, left: Any, right: Any, weights: Float[np.ndarray, " edges"]) -> None:
        """Add edges whose ends are the rows of two matrices, dense or sparse."""
        D = sparse.diags_array(weights)
        cross = left.T @ (D @ right)
        self.weight = self.weight + weights.sum()
        self.mean = self.mean + (left + right).T @ weights
        self.cross = self.cross + _dense(cross + cross.T)
        self.own = self.own + _dense(left.T @ (D @ left) + right.T @ (D @ right))

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))

    def covariances(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean of an end, the covariance of the two ends of an edge, and that of one end."""
        mean = self.mean / (2 * self.weight)
        square = np.outer(mean, mean)
        return mean, self.cross / (2 * self.weight) - square, self.own / (2 * self.weight) - square


def _shrink(solution: LinearSolution, held: _Sums) -> tuple[Float[np.ndarray, " dim"], Float[np.ndarray, " dim"]]:
    """Return correlation (in descending order) and variance of each dimension, as edges held out have them."""
    from sklearn.isotonic import isotonic_regression

    _, between, total = held.covariances()
    W = solution.directions
    variance = np.maximum(((total @ W) * W).sum(axis=0), 1e-12)
    correlation = isotonic_regression(((between @ W) * W).sum(axis=0) / variance, increasing=False)
    return np.clip(correlation, _LEAST, _MOST), variance


def _ends(data: TrainingData, inputs: InputTransform, edges: np.ndarray, step: int) -> tuple[Any, Any]:
    """Return the rows of both ends of each edge, as the encoder reads them."""
    vertices, places = np.unique(edges, return_inverse=True)
    rows = inputs(data.rows(vertices, step))
    if isinstance(rows, SparseRows):
        parts = (rows.values, rows.pattern.columns, rows.pattern.offsets)
        matrix: Any = sparse.csr_array(tuple(part.numpy() for part in parts), shape=rows.shape)
    else:
        matrix = rows.dense().numpy()
    first, second = places.reshape(-1, 2).T
    return matrix[first].astype(np.float64), matrix[second].astype(np.float64)


def _stack(parts: Sequence[Any]) -> Any:
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sparse.vstack(parts, format="csr")


def _dense(matrix: Any) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _leading_directions(rows: Any, seed: int) -> Float[np.ndarray, "features dim"]:
    from sklearn.decomposition import TruncatedSVD

    solver: Any = TruncatedSVD(min(_DIRECTIONS, rows.shape[0]), n_iter=2, random_state=seed).fit(rows)
    return solver.components_.T
