"""Sketched spanning weights: eliminate what is cheap exactly, project the core at random, substitute back exactly."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt
from scipy.special import ndtri

from corrvae.graphs.weights.kernels import projection
from corrvae.graphs.weights.kernels.elimination import (
    Elimination,
    Structure,
    back_substitute,
    eliminate,
    read_resistances,
    sparse_core,
)
from corrvae.graphs.weights.laplacian import LaplacianSolver
from corrvae.graphs.weights.progress import Monitor

EdgeValues = Float[np.ndarray, " edges"]

FEWEST_PROJECTIONS = 2 * projection.WIDTH
_MOST_BLOCKS = 1 << 12


@dataclass(frozen=True)
class Sketch:
    """Estimated resistances across the edges of a structure, zero for other edges; standard errors of the weights."""

    resistances: EdgeValues
    standard_errors: EdgeValues
    n_projections: int
    converged: bool


def sketch_bytes(structure: Structure, n_projections: int, n_threads: int) -> float:
    """Return the memory that `solve_sketch` will take, with an allowance for the core's fill.

    Back-substitution keeps a copy of the columns, and the projections both in blocks and side by side; single precision
    is counted as double, which badly conditioned cores need.
    """
    core_edges = structure.later_rows.size + 2.0 * structure.tails.size
    blocks = 8.0 * projection.WIDTH * structure.core_size * 5 * n_threads
    edge_sums = 16.0 * core_edges * (n_threads + 1)
    points = 16.0 * structure.core_size * n_projections
    return 16.0 * structure.columns[-1] + points + blocks + edge_sums + 110.0 * core_edges


def solve_sketch(
    structure: Structure,
    conductances: EdgeValues,
    *,
    epsilon: float,
    delta: float,
    random_state: np.random.Generator,
    n_threads: int,
    require_memory: Callable[[int], None],
    monitor: Monitor,
) -> Sketch:
    """Estimate the resistance across every edge of the structure.

    The first projections show which edge is hardest; as many follow as bring the estimated standard error of every
    weight down to `epsilon` divided by the normal quantile of `1 - delta / 2`.
    """
    quantile = float(ndtri(1.0 - delta / 2.0))
    monitor.phase("eliminating", structure.columns.size - 1)
    keys = random_state.integers(0, 2**63, size=_MOST_BLOCKS, dtype=np.uint64)
    elimination = eliminate(structure, conductances, monitor.control)
    monitor.check()
    core = sparse_core(structure, elimination, conductances, monitor.control)
    monitor.check()
    projections = _Projections(core, structure.core_size, keys, n_threads, monitor)
    # An edge of weight 1/2 inside the core has the standard error 0.5 / sqrt(projections); begin with what that needs.
    blocks = int(np.clip(np.ceil((0.5 * quantile / epsilon) ** 2 / projection.WIDTH), 2, 8))
    while True:
        if blocks > _MOST_BLOCKS:
            raise ValueError(
                f"epsilon={epsilon} needs {blocks * projection.WIDTH:,} projections; ask for at least "
                f"{epsilon * np.sqrt(blocks / _MOST_BLOCKS):.2g}, or for method='exact'"
            )
        require_memory(blocks * projection.WIDTH)
        projections.extend(blocks, monitor)
        fresh = elimination._replace(values=elimination.values.copy())  # back-substitution overwrites them
        resistances, deviations = _substitute_back(structure, fresh, projections, conductances, monitor)
        needed = (quantile / epsilon * float((conductances * deviations).max())) ** 2 / projection.WIDTH
        if needed <= blocks:
            break
        blocks = int(np.ceil(1.05 * needed))
    standard_errors = conductances * deviations / np.sqrt(projections.count)
    return Sketch(resistances, standard_errors, projections.count, projections.converged)


class _Projections:
    """Random projections of a core, extended a block of columns at a time; the same for any number of threads."""

    def __init__(
        self,
        core: tuple[np.ndarray, np.ndarray, np.ndarray],
        n_vertices: int,
        keys: UInt[np.ndarray, " keys"],
        n_threads: int,
        monitor: Monitor,
    ) -> None:
        self.tails, self.heads, self.conductances = tails, heads, conductances = core
        self.n_vertices, self.keys, self.n_threads = n_vertices, keys, n_threads
        self.solver = LaplacianSolver(tails, heads, conductances, n_vertices, monitor)
        self.roots = np.sqrt(conductances).astype(self.solver.dtype)
        self.linear = np.zeros(tails.size)
        self.quadratic = np.zeros(tails.size)
        self.blocks: list[np.ndarray] = []
        self.converged = True

    @property
    def count(self) -> int:
        """The number of projections."""
        return len(self.blocks) * projection.WIDTH

    def extend(self, n_blocks: int, monitor: Monitor) -> None:
        """Solve until there are `n_blocks` blocks."""
        monitor.phase(f"projecting a core of {self.n_vertices:,} vertices")

        def solve(key: np.uint64) -> tuple[np.ndarray, bool, np.ndarray, np.ndarray]:
            residual = np.empty((self.n_vertices, projection.WIDTH), self.solver.dtype)
            projection.project(self.tails, self.heads, self.roots, key, residual)
            x, converged = self.solver.solve(residual, monitor)
            return x, converged, *projection.read_signs_and_squares(self.tails, self.heads, self.roots, key, x)

        with ThreadPoolExecutor(self.n_threads) as pool:
            for x, converged, linear, quadratic in pool.map(solve, self.keys[len(self.blocks) : n_blocks]):
                monitor.check()
                self.blocks.append(x)
                self.converged &= converged
                self.linear += linear
                self.quadratic += quadratic

    def embedding(self) -> Float[np.ndarray, "core_vertices projections"]:
        """Return vertices placed so that squared distances estimate resistances."""
        points = np.hstack(self.blocks)
        points /= np.float32(np.sqrt(self.count))
        return points

    def core_weights(self) -> tuple[Float[np.ndarray, " core_edges"], Float[np.ndarray, " core_edges"]]:
        """Return the estimated weight of every core edge, and its standard deviation for one projection.

        Two unbiased estimates, H from the signs and J from the squares, are mixed as (1 - b) H + b J with the b that
        minimises the asymptotic variance at p: b = (1 - 2p) / ((1 - 2p)^2 + 2p(1 - p)), leaving 2 v^2 / (1 - 2v) with
        v = p (1 - p).
        """
        from_signs, from_squares = self.linear / self.count, self.quadratic / self.count
        weights = np.clip(0.5 * (from_signs + from_squares), 1e-6, 1.0 - 1e-6)
        for _ in range(2):
            v = weights * (1.0 - weights)
            mix = (1.0 - 2.0 * weights) / ((1.0 - 2.0 * weights) ** 2 + 2.0 * v)
            weights = np.clip((1.0 - mix) * from_signs + mix * from_squares, 1e-6, 1.0 - 1e-6)
        v = weights * (1.0 - weights)
        return weights, np.sqrt(2.0 * v * v / (1.0 - 2.0 * v))


def _substitute_back(
    structure: Structure,
    elimination: Elimination,
    projections: _Projections,
    conductances: np.ndarray,
    monitor: Monitor,
) -> tuple[np.ndarray, np.ndarray]:
    """Return resistances of all edges of the structure, and their standard deviations for one projection.

    An eliminated vertex v sits at the mean of its neighbours, weighted by their conductances, and is 1 / D away from
    it. Its resistance to a neighbour is that exact part plus one squared distance, whose relative deviation is at
    most sqrt(2).
    """
    resistances, exact = np.zeros(conductances.size), np.zeros(conductances.size)
    inside = structure.later_pointers[structure.first]  # where the edges between core vertices begin
    counts = np.diff(structure.later_pointers)
    monitor.phase("substituting back", structure.columns.size - 1)
    back_substitute(structure, elimination, np.zeros((0, 0)), projections.embedding(), monitor.control)
    monitor.check()
    read_resistances(structure, elimination.values, np.zeros((0, 0)), resistances)
    exact[structure.later_edges[:inside]] = np.repeat(elimination.inverse_sums, counts)[:inside]
    deviations = np.sqrt(2.0) * np.maximum(resistances - exact, 0.0)

    # Original edges inside the core: the core edge may carry fill as well, and resistance is what they share.
    n_core = projections.n_vertices
    edges, heads = structure.later_edges[inside:], structure.later_rows[inside:] - structure.first
    tails = np.repeat(np.arange(n_core), counts[structure.first :])
    place = np.searchsorted(projections.tails.astype(np.int64) * n_core + projections.heads, tails * n_core + heads)
    weights, spread = projections.core_weights()
    resistances[edges] = weights[place] / projections.conductances[place]
    deviations[edges] = spread[place] / projections.conductances[place]
    return resistances, deviations


def shorted_weights(edges: Int[np.ndarray, "edges 2"], conductances: EdgeValues, n_vertices: int) -> EdgeValues:
    """Return a lower bound of every spanning weight.

    Joining all other vertices into one can only lower a resistance (Rayleigh). What remains between i and j is their
    edge beside the rest of i's conductance and the rest of j's in series.
    """
    sums = np.bincount(edges.ravel(), np.repeat(conductances, 2), n_vertices)
    rest = np.maximum(sums[edges] - conductances[:, None], 0.0)
    around = rest.prod(axis=1) / np.maximum(rest.sum(axis=1), np.finfo(float).tiny)
    return conductances / (conductances + around)


def restore_sum(weights: EdgeValues, standard_errors: EdgeValues, lower: EdgeValues, total: float) -> EdgeValues:
    """Return estimates moved to a known sum, in proportion to their standard errors, within [lower, 1].

    The errors of a sketch go together: what one edge contributes to the error of the sum is about proportional to its
    standard error, so that is its share.
    """
    weights = np.clip(weights, lower, 1.0)
    for _ in range(50):
        gap = total - weights.sum()
        free = standard_errors * (weights < 1.0 if gap > 0.0 else weights > lower)
        if abs(gap) <= 1e-12 * max(total, 1.0) or not free.any():
            break
        weights = np.clip(weights + gap * free / free.sum(), lower, 1.0)
    return weights
