"""Sketched spanning weights: eliminate what is cheap exactly, project the core at random, substitute back exactly."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt
from scipy.special import ndtri

from corrvae.graphs.weights.kernels import projection
from corrvae.graphs.weights.kernels.elimination import back_substitute, eliminate, read_resistances, sparse_core
from corrvae.graphs.weights.kernels.symbolic import Structure
from corrvae.graphs.weights.laplacian import LaplacianSolver
from corrvae.monitor import Monitor
from corrvae.ranks import Ranks

FEWEST_PROJECTIONS = 2 * projection.WIDTH
_MOST_BLOCKS = 1 << 12


@dataclass(frozen=True)
class Sketch:
    """Estimated resistances across the edges of a structure.

    Attributes
    ----------
    resistances, standard_errors
        Of each edge of the graph; zero where the structure has no edge.
    core_size, n_projections
        What was projected, and on how many random directions.
    converged
        Whether every solve reached its tolerance.
    """

    resistances: Float[np.ndarray, " edges"]
    standard_errors: Float[np.ndarray, " edges"]
    core_size: int
    n_projections: int
    converged: bool


@dataclass(frozen=True)
class _Core:
    """The weighted graph left after the elimination."""

    tails: Int[np.ndarray, " core_edges"]
    heads: Int[np.ndarray, " core_edges"]
    conductances: Float[np.ndarray, " core_edges"]
    n_vertices: int


def sketch_bytes(structure: Structure, n_projections: int, n_threads: int) -> float:
    """Memory that `solve_sketch` will take, with an allowance for the core's fill, which the degree limit bounds.

    The way back keeps a copy of the columns, and the projections both in blocks and side by side; single precision is
    counted as double, which badly conditioned cores need.
    """
    core_size = structure.columns.size - 1 - structure.first
    core_edges = structure.later_rows.size + 2.0 * structure.tails.size
    blocks = 8.0 * projection.WIDTH * core_size * 5 * n_threads
    edge_sums = 16.0 * core_edges * (n_threads + 1)
    return 16.0 * structure.columns[-1] + 16.0 * core_size * n_projections + blocks + edge_sums + 110.0 * core_edges


def solve_sketch(
    structure: Structure,
    conductances: Float[np.ndarray, " edges"],
    *,
    epsilon: float,
    delta: float,
    random_state: np.random.Generator,
    n_threads: int,
    require_memory: Callable[[int], None],
    monitor: Monitor,
    ranks: Ranks | None = None,
) -> Sketch:
    """Estimate the resistance across every edge of the structure.

    The first projections tell which edge is hardest; as many follow as bring the estimated standard error of every
    weight down to `epsilon` divided by the normal quantile of `1 - delta / 2`. Several ranks divide the solves; rank 0
    has the rest of the work, decides how many solves there are, and hands out what it finds.
    """
    ranks = ranks or Ranks()
    n_positions = structure.columns.size - 1
    quantile = float(ndtri(1.0 - delta / 2.0))
    monitor.phase("eliminating", n_positions)
    keys = ranks.hand_out(random_state.integers(0, 2**63, size=_MOST_BLOCKS, dtype=np.uint64))
    with ranks.agreed():
        elimination = eliminate(structure, conductances, monitor.control)
        monitor.check()
        core = _Core(*sparse_core(structure, elimination, conductances, monitor.control), n_positions - structure.first)
        monitor.check()
        projections = _Projections(core, keys, n_threads, monitor, ranks)
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
        resistances, deviations = np.zeros((2, conductances.size))
        with ranks.agreed():
            if ranks.is_first:
                fresh = elimination._replace(values=elimination.values.copy())  # the way back overwrites them
                resistances, deviations = _substitute_back(structure, fresh, projections, conductances, monitor)
        needed = (quantile / epsilon * float((conductances * deviations).max())) ** 2 / projection.WIDTH
        needed = ranks.tell(needed)
        if needed <= blocks:
            break
        blocks = int(np.ceil(1.05 * needed))
    resistances, deviations = ranks.hand_out(resistances), ranks.hand_out(deviations)
    n_projections = projections.n_blocks * projection.WIDTH
    standard_errors = conductances * deviations / np.sqrt(n_projections)
    return Sketch(resistances, standard_errors, core.n_vertices, n_projections, projections.converged)


@dataclass(frozen=True, eq=False)
class _SolvedBlock:
    """Columns of one key: solutions, whether all reached their accuracy, and what signs and squares sum to."""

    x: Float[np.ndarray, "core_vertices width"]
    converged: bool
    linear: Float[np.ndarray, " core_edges"]
    quadratic: Float[np.ndarray, " core_edges"]


class _Projections:
    """Random projections of a core, extended a block of columns at a time; the same for any threads and ranks.

    Rank 0 alone keeps the blocks.
    """

    def __init__(
        self, core: _Core, keys: UInt[np.ndarray, " keys"], n_threads: int, monitor: Monitor, ranks: Ranks
    ) -> None:
        self.core, self.keys, self.n_threads, self.ranks = core, keys, n_threads, ranks
        self.solver = LaplacianSolver(core.tails, core.heads, core.conductances, core.n_vertices, monitor)
        self.roots = np.sqrt(core.conductances).astype(self.solver.dtype)
        self.linear = np.zeros(core.tails.size)
        self.quadratic = np.zeros(core.tails.size)
        self.blocks: list[Float[np.ndarray, "core_vertices width"]] = []
        self.n_blocks = 0
        self.converged = True

    def extend(self, n_blocks: int, monitor: Monitor) -> None:
        """Solve until there are `n_blocks` blocks."""
        monitor.phase(f"projecting a core of {self.core.n_vertices:,} vertices")
        with ThreadPoolExecutor(self.n_threads) as pool:
            for solved in self._solved(self.keys[self.n_blocks : n_blocks], pool, monitor):
                monitor.check()
                self.n_blocks += 1
                self.converged &= solved.converged
                if self.ranks.is_first:
                    self.blocks.append(solved.x)
                    self.linear += solved.linear
                    self.quadratic += solved.quadratic

    def _solved(
        self, keys: UInt[np.ndarray, " keys"], pool: ThreadPoolExecutor, monitor: Monitor
    ) -> Iterator["_SolvedBlock"]:
        """Solve blocks, and give them in the order of their keys."""
        if self.ranks.count == 1:
            yield from pool.map(lambda key: self._solve(key, monitor), keys)
            return
        at_a_time = self.ranks.count * self.n_threads  # what is in memory at once, exchanges included
        for begin in range(0, len(keys), at_a_time):
            some = keys[begin : begin + at_a_time]
            with self.ranks.agreed():
                mine = list(pool.map(lambda key: self._solve(key, monitor), some[self.ranks.share(len(some))]))
            yield from self._exchanged(mine)

    def _exchanged(self, mine: list["_SolvedBlock"]) -> Iterator["_SolvedBlock"]:
        """Give the blocks of all ranks in order."""
        n_vertices, n_edges, kind = self.core.n_vertices, self.core.tails.size, self.solver.dtype
        whole = []
        for name, shape in (("x", (n_vertices, projection.WIDTH)), ("linear", (n_edges,)), ("quadratic", (n_edges,))):
            part = np.array([getattr(block, name) for block in mine], kind).reshape(len(mine), *shape)
            whole.append(itertools.chain.from_iterable(self.ranks.gather(part)))
        converged = self.ranks.gather_rows(np.array([block.converged for block in mine], np.uint8)).astype(bool)
        for x, linear, quadratic, well in zip(*whole, converged, strict=True):
            yield _SolvedBlock(x, bool(well), linear, quadratic)

    def _solve(self, key: np.uint64, monitor: Monitor) -> "_SolvedBlock":
        core = self.core
        residual = np.empty((core.n_vertices, projection.WIDTH), self.solver.dtype)
        projection.project(core.tails, core.heads, self.roots, key, residual)
        x, converged = self.solver.solve(residual, monitor)
        sums = projection.read_signs_and_squares(core.tails, core.heads, self.roots, key, x)
        return _SolvedBlock(x, converged, *sums)

    def embedding(self) -> Float[np.ndarray, "core_vertices projections"]:
        """Vertices placed so that squared distances estimate resistances."""
        points = np.hstack(self.blocks)
        points /= np.float32(np.sqrt(self.n_blocks * projection.WIDTH))
        return points

    def core_weights(self) -> tuple[Float[np.ndarray, " core_edges"], Float[np.ndarray, " core_edges"]]:
        """Estimated weight of every core edge, and its standard deviation for one projection.

        Two unbiased estimates, H from the signs and J from the squares, are mixed as (1 - b) H + b J with the b that
        minimises the asymptotic variance at p: b = (1 - 2p) / ((1 - 2p)^2 + 2p(1 - p)), leaving 2 v^2 / (1 - 2v) with
        v = p (1 - p).
        """
        k = self.n_blocks * projection.WIDTH
        from_signs, from_squares = self.linear / k, self.quadratic / k
        weights = np.clip(0.5 * (from_signs + from_squares), 1e-6, 1.0 - 1e-6)
        for _ in range(2):
            v = weights * (1.0 - weights)
            mix = (1.0 - 2.0 * weights) / ((1.0 - 2.0 * weights) ** 2 + 2.0 * v)
            weights = np.clip((1.0 - mix) * from_signs + mix * from_squares, 1e-6, 1.0 - 1e-6)
        v = weights * (1.0 - weights)
        return weights, np.sqrt(2.0 * v * v / (1.0 - 2.0 * v))


def _substitute_back(structure, elimination, projections: _Projections, conductances, monitor: Monitor):
    """Resistances of all edges of the structure, and their standard deviations for one projection.

    An eliminated vertex v sits at the mean of its neighbours, weighted by their conductances, and is 1 / D away from
    it. Its resistance to a neighbour is that exact part plus one squared distance, whose relative deviation is at
    most sqrt(2).
    """
    resistances, exact = np.zeros(conductances.size), np.zeros(conductances.size)
    monitor.phase("substituting back", structure.columns.size - 1)
    back_substitute(structure, elimination, np.zeros((0, 0)), projections.embedding(), monitor.control)
    monitor.check()
    read_resistances(structure, elimination.values, np.zeros((0, 0)), resistances)
    projection.exact_parts(structure, elimination.inverse_sums, exact)
    deviations = np.sqrt(2.0) * np.maximum(resistances - exact, 0.0)

    # Original edges inside the core: the core edge may carry fill as well, and resistance is what they share.
    core = projections.core
    inside = slice(structure.later_pointers[structure.first], None)
    edges, heads = structure.later_edges[inside], structure.later_rows[inside] - structure.first
    counts = np.diff(structure.later_pointers[structure.first :])
    tails = np.repeat(np.arange(core.n_vertices), counts)
    place = np.searchsorted(core.tails.astype(np.int64) * core.n_vertices + core.heads, tails * core.n_vertices + heads)
    weights, spread = projections.core_weights()
    resistances[edges] = weights[place] / core.conductances[place]
    deviations[edges] = spread[place] / core.conductances[place]
    return resistances, deviations
