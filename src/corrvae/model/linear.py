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
# Edges that moments are taken over; where features are drawn anew, so many draws, each for so many edges at a time.
_EDGES, _DRAWS, _BLOCK = 20_000, 6, 50
# Up to so many features all are used; of more, so many leading singular directions.
_FEATURES, _DIRECTIONS = 3000, 500
# A share of the mean variance of a feature.
_RIDGE = 0.3


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

    Both are weighted by the edges' spanning weights. Of wide tables they are taken in the leading singular directions
    of the rows, which stay sparse.
    """
    if data.edges is None or not len(data.edges):
        raise ValueError("the linear model is solved from edges, and there are none between rows that are trained on")
    chosen = np.random.default_rng(seed).permutation(len(data.edges))[:_EDGES]
    weights = np.ones(len(chosen)) if data.weights is None else data.weights[chosen]
    weights = sparse.diags_array(weights / weights.sum())
    blocks = np.array_split(data.edges[chosen], ceil(len(chosen) / _BLOCK))
    n_draws = 1 if data.augment is None else _DRAWS
    basis, mean, between, total = None, 0.0, 0.0, 0.0
    for draw in range(n_draws):
        ends = [_ends(data, inputs, block, draw * len(blocks) + k) for k, block in enumerate(blocks)]
        left, right = (_stack(side) for side in zip(*ends, strict=True))
        if data.table.shape[1] > _FEATURES:
            basis = _leading_directions(_stack([left, right]), seed) if basis is None else basis
            left, right = left @ basis, right @ basis
        cross, own = left.T @ (weights @ right), left.T @ (weights @ left) + right.T @ (weights @ right)
        mean = mean + (left + right).T @ weights.diagonal() / (2 * n_draws)
        between = between + _dense(cross + cross.T) / (2 * n_draws)
        total = total + _dense(own) / (2 * n_draws)
    square = np.outer(mean, mean)
    ridge = _RIDGE * len(square) / data.table.shape[1]
    solution = solve_linear(between - square, total - square, np.asarray(mean), n_components, ridge=ridge)
    if basis is None:
        return solution
    return LinearSolution(basis @ solution.directions, basis @ solution.mean, solution.correlation)


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
