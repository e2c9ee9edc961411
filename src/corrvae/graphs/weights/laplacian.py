"""Solutions of L x = b for many columns at once, as accurate as the weakest link of the graph needs.

Conjugate gradients could stop when the residual r is small, but what counts here is the error of x across every edge,
and that is bounded by r' D^-1 r / lambda, with lambda the smallest nonzero eigenvalue of D^-1/2 L D^-1/2. Where
communities are joined by a few weak links lambda is tiny and the residual does not show those links, so lambda is
estimated first (Lanczos) and iterations continue until the bound is met.
"""

from collections import deque
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from corrvae.graphs.weights.kernels import projection
from corrvae.graphs.weights.progress import Monitor

_ERROR = 0.01  # of a column across any edge, in units of what one random sign contributes
_MAX_ITERATIONS = 5_000
_LANCZOS_STEPS = 300
_WELL_CONNECTED = 0.05, 1e4  # smallest eigenvalue and largest ratio of conductances for single precision
_WINDOW = 10  # iterations whose gain must be negligible too, where the eigenvalue is small and may be overestimated


@final
class LaplacianSolver:
    """Solver for one weighted graph, connected or not, in which every vertex has an edge.

    It works in single precision for well-connected graphs, in double for others.
    """

    def __init__(
        self,
        tails: Int[np.ndarray, " edges"],
        heads: Int[np.ndarray, " edges"],
        conductances: Float[np.ndarray, " edges"],
        n_vertices: int,
        monitor: Monitor,
    ) -> None:
        degrees = np.bincount(tails, conductances, n_vertices) + np.bincount(heads, conductances, n_vertices)
        ends = (np.concatenate([tails, heads]), np.concatenate([heads, tails]))
        off_diagonal = coo_array((-np.concatenate([conductances, conductances]), ends), shape=(n_vertices, n_vertices))
        laplacian = csr_array(off_diagonal.tocsr() + diags_array(degrees))
        self.smallest_eigenvalue = _smallest_eigenvalue(laplacian, degrees, monitor)
        eigenvalue, ratio = _WELL_CONNECTED
        easy = self.smallest_eigenvalue >= eigenvalue and conductances.max() <= ratio * conductances.min()
        self.dtype = np.dtype(np.float32 if easy else np.float64)
        self.window = 1 if easy else _WINDOW
        self.laplacian = laplacian.astype(self.dtype)
        self.inverse_degrees = (1.0 / degrees).astype(self.dtype)

    def solve(
        self, residual: Float[np.ndarray, "vertices width"], monitor: Monitor
    ) -> tuple[Float[np.ndarray, "vertices width"], bool]:
        """Solve L x = residual, which is overwritten; return x and whether every column reached its accuracy."""
        x = np.zeros_like(residual)
        direction = residual * self.inverse_degrees[:, None]
        norms = projection.column_products(residual, direction)
        gains: deque[np.ndarray] = deque(maxlen=self.window)
        for _ in range(_MAX_ITERATIONS):
            monitor.check()
            image = self.laplacian @ direction
            step = _ratio(norms, projection.column_products(direction, image))
            gains.append(step * norms)
            previous = norms
            norms = projection.descend(step.astype(self.dtype), direction, image, x, residual, self.inverse_degrees)
            bounded = np.all(norms <= _ERROR**2 * self.smallest_eigenvalue)
            stalled = self.window == 1 or (len(gains) == self.window and np.all(sum(gains) <= _ERROR**2))
            if bounded and stalled:
                return x, True
            share = _ratio(norms, previous).astype(self.dtype)
            projection.next_direction(share, residual, self.inverse_degrees, direction)
        return x, False


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)


def _smallest_eigenvalue(laplacian: csr_array, degrees: np.ndarray, monitor: Monitor) -> float:
    """Return the smallest nonzero eigenvalue of D^-1/2 L D^-1/2, halved to be on the safe side, by Lanczos' method."""
    scale = 1.0 / np.sqrt(degrees)
    labels = connected_components(laplacian, directed=False)[1]
    masses = np.bincount(labels, degrees)

    def without_constants(vector: np.ndarray) -> np.ndarray:
        means = np.bincount(labels, vector / scale) / masses  # the zero eigenvectors are D^1/2 1 on each component
        return vector - means[labels] / scale

    vector = without_constants(np.random.default_rng(0).standard_normal(degrees.size))
    vector /= np.linalg.norm(vector)
    before = np.zeros_like(vector)
    diagonal: list[float] = []
    beside: list[float] = []
    smallest = np.inf
    for step in range(1, min(_LANCZOS_STEPS, degrees.size) + 1):
        monitor.check()
        image = scale * (laplacian @ (scale * vector))
        diagonal.append(float(vector @ image))
        image = without_constants(image - diagonal[-1] * vector - (beside[-1] if beside else 0.0) * before)
        beside.append(float(np.linalg.norm(image)))
        exhausted = beside[-1] < 1e-12
        if step % 10 == 0 or exhausted:
            found = eigvalsh_tridiagonal(np.array(diagonal), np.array(beside[:-1]), select="i", select_range=(0, 0))[0]
            converged = found > 0.9 * smallest
            smallest = min(smallest, max(float(found), np.finfo(float).tiny))
            if converged or exhausted:
                break
        before, vector = vector, image / beside[-1]
    return 0.5 * min(smallest, 1.0)
