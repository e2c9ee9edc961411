"""Spanning weights: the share of maximal acyclic subgraphs that contain each edge.

w_e = Pr[e in T], T uniform over the maximal acyclic subgraphs, which is the effective resistance across e. With
conductances c, T is drawn in proportion to the product of its conductances, and w_e = c_e R_e.
"""

import os
import time
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack
from scipy.special import ndtri

from corrvae.graphs.edges import check_conductances
from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights.progress import Monitor, watch

if TYPE_CHECKING:
    from corrvae.graphs.weights.kernels.elimination import Structure

Method = Literal["auto", "exact", "sketch", "sample"]

# Vertices up to which one dense inverse is used, without numba: it takes less than a second, while compiling the
# elimination takes more than ten seconds once. Once compiled, elimination is many times faster beyond half of that.
LARGEST_DENSE = 3000
_AFFORDABLE_SECONDS = 40.0  # predicted, on one core: past this `auto` sketches
_CGROUP = Path("/sys/fs/cgroup")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SpanningWeights:
    """Spanning weights in edge order, and how they were computed; ``numpy.asarray(result)`` returns the weights.

    Attributes
    ----------
    weights : numpy.ndarray
        Share of the maximal acyclic subgraphs that contain each edge, in (0, 1].
    method : {"exact", "sketch", "sample"}
        The method used.
    core_size : int
        Vertices left after elimination: the largest dense core, or the core that was sketched.
    route : str
        What was done, in words.
    error : float
        Bound on the error of each weight with probability `confidence`: 0.0 when exact, 1.0 when a sketch failed.
    bound : {"rounding", "Hoeffding", "standard error"}
        What the bound rests on: rounding alone; an inequality without assumptions; or the largest estimated standard
        error times the normal quantile.
    confidence : float
        1 - delta; for all edges at once with ``simultaneous=True``.
    standard_errors : numpy.ndarray or None
        Estimated, of each weight, when sketched; zero where exact.
    log_forests : float or None
        When exact: the logarithm of the sum over all maximal acyclic subgraphs of the product of their conductances.
        Without conductances that is the logarithm of their number.
    n_draws : int
        Random projections or forests used.
    seconds : float
        Wall-clock time, analysis included.
    """

    weights: Float[np.ndarray, " edges"]
    method: Literal["exact", "sketch", "sample"]
    core_size: int
    route: str
    error: float = 0.0
    bound: Literal["rounding", "Hoeffding", "standard error"] = "rounding"
    confidence: float = 1.0
    n_draws: int = 0
    seconds: float = 0.0
    standard_errors: Float[np.ndarray, " edges"] | None = field(default=None, repr=False)
    log_forests: float | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.weights, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.weights.size

    def __repr__(self) -> str:
        return f"SpanningWeights({self.weights.size:,} edges, {self.route}, {self.seconds:.2f} s)"


def spanning_weights(
    graph: CorrelationGraph,
    method: Method = "auto",
    *,
    epsilon: float = 0.05,
    delta: float = 0.05,
    simultaneous: bool = False,
    memory_budget: float | None = None,
    random_state: int | np.random.Generator | None = None,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> SpanningWeights:
    """Return the share of the maximal acyclic subgraphs of a graph that contain each edge.

    With conductances, forests count in proportion to the product of theirs.

    Parameters
    ----------
    graph
        The correlation graph: connected or not, with or without conductances.
    method
        ``"exact"``: elimination, a dense core, back-substitution. ``"sketch"``: exact elimination around a randomly
        projected core. ``"sample"``: random forests. ``"auto"``: exact as long as that takes less than about a minute
        and fits in memory, a sketch of the pieces that do not.
    epsilon, delta
        For ``sketch`` and ``sample``: each weight is off by at most `epsilon` with probability ``1 - delta``, by
        estimated standard errors for the sketch and by Hoeffding's inequality for samples.
    simultaneous
        Demand that of all edges at once instead of each one.
    memory_budget
        Bytes that may be used; by default half of what is free. A ``MemoryError`` states what would be needed.
    random_state
        Seed or generator; another solve with the same generator differs. The same seed gives the same bits, for
        any number of threads for ``sketch`` and ``sample``, for the same number of threads for ``exact``.
    n_threads
        Cores to use; by default all that the process may use.
    progress
        Show a progress bar for anything over two seconds; by default when standard error is a terminal.

    Examples
    --------
    >>> from corrvae import CorrelationGraph, spanning_weights
    >>> graph = CorrelationGraph.from_edges([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])
    >>> result = spanning_weights(graph)
    >>> result.weights.round(3).tolist(), result.method, result.bound
    ([0.667, 0.667, 0.667, 1.0], 'exact', 'rounding')
    """
    _check_arguments(graph, method, epsilon, delta)
    limit = {"auto": LARGEST_DENSE, "exact": LARGEST_DENSE // 2}.get(method, 0)
    if graph.conductances is None and graph.n_edges > 0 and graph.n_vertices <= limit and memory_budget is None:
        begun = time.perf_counter()
        weights, log_forests = dense_weights(graph)
        core_size = graph.n_vertices - graph.n_connected
        return SpanningWeights(
            weights=weights,
            method="exact",
            core_size=core_size,
            route=f"exact: dense inverse of {core_size:,} vertices",
            seconds=time.perf_counter() - begun,
            log_forests=log_forests,
        )
    plan = SpanningPlan(
        graph,
        method=method,
        epsilon=epsilon,
        delta=delta,
        simultaneous=simultaneous,
        memory_budget=memory_budget,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    return plan.solve()


def dense_weights(graph: CorrelationGraph) -> tuple[Float[np.ndarray, " edges"], float]:
    """Return the weights of a small graph without conductances and the logarithm of its number of forests.

    The weight of an edge is the effective resistance across it, from the inverse of the Laplacian without one vertex of
    each component; the determinant of that matrix is the number of forests. An edge on a cycle of k edges has a weight
    of at most (k - 1) / k, since further edges only lower the resistance. With n vertices, a weight above 1 - 1/n is
    therefore that of a bridge, exactly 1.
    """
    n, (tails, heads) = graph.n_vertices, graph.edges.T
    laplacian = np.diag(graph.degrees.astype(np.float64))
    laplacian[tails, heads] = laplacian[heads, tails] = -1.0
    # The vertex of the highest degree of each component is the ground.
    order = np.lexsort((-graph.degrees, graph.components))
    _, first = np.unique(graph.components[order], return_index=True)
    kept = np.setdiff1d(np.arange(n), order[first])
    grounded, potential = laplacian[np.ix_(kept, kept)], np.zeros((n, n))
    factorise, invert = lapack.get_lapack_funcs(("potrf", "potri"), (grounded,))
    factor, _ = factorise(grounded, lower=1)
    log_forests = 2.0 * float(np.log(factor.diagonal()).sum())
    potential[np.ix_(kept, kept)], _ = invert(factor, lower=1, overwrite_c=1)  # its lower triangle
    own = potential.diagonal()
    weights = own[tails] + own[heads] - 2.0 * potential[heads, tails]
    weights[weights > 1.0 - 0.5 / n] = 1.0
    weights.flags.writeable = False
    return weights, log_forests


@final
class SpanningPlan:
    """Spanning weights of one graph for any conductances: what depends on the pattern alone is computed once.

    Parameters are those of `spanning_weights`.
    """

    def __init__(
        self,
        graph: CorrelationGraph,
        *,
        method: Method = "auto",
        epsilon: float = 0.05,
        delta: float = 0.05,
        simultaneous: bool = False,
        memory_budget: float | None = None,
        random_state: int | np.random.Generator | None = None,
        n_threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        _check_arguments(graph, method, epsilon, delta)
        begun = time.perf_counter()
        self.graph = graph
        self.method = method
        self.epsilon = float(epsilon)
        self.confidence = 1.0 - float(delta)
        self.delta = float(delta) / max(graph.n_edges, 1) if simultaneous else float(delta)  # of one edge
        self.memory_budget = float(default_budget() if memory_budget is None else memory_budget)
        self.random_state = random_state
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.n_threads = int(n_threads or available)
        self.progress = progress
        self._n_forests = forests_needed(self.epsilon, self.delta)
        self._exact: list[Structure] = []
        self._sketch: Structure | None = None
        self._require(0.0, "the analysis of the graph")
        watch(self._analyse, progress=progress)
        self._seconds = time.perf_counter() - begun

    def solve(self, conductances: Float[np.ndarray, " edges"] | None = None) -> SpanningWeights:
        """Return spanning weights for conductances in the order of ``graph.edges``; None: those of the graph."""
        begun = time.perf_counter()
        given = self.graph.conductances
        if conductances is not None:
            given = check_conductances(conductances, self.graph.edges, self.graph._ids)
        scaled, exponent = (None, 0) if given is None else _scaled(given)
        result = watch(lambda monitor: self._solve(scaled, monitor), progress=self.progress)
        if result.log_forests is not None:  # every forest has as many edges
            n_edges = self.graph.n_vertices - self.graph.n_connected
            result = replace(result, log_forests=result.log_forests + n_edges * exponent * np.log(2.0))
        seconds, self._seconds = self._seconds, 0.0  # the analysis counts once
        return replace(result, seconds=seconds + time.perf_counter() - begun)

    def _analyse(self, monitor: Monitor) -> None:
        """Decide which pieces are solved exactly and which are sketched, and compute their patterns."""
        from corrvae.graphs.weights import exact, pattern, sample, sketch
        from corrvae.graphs.weights.kernels import ordering as kernels

        self._pieces = pieces = pattern.split_into_pieces(self.graph)
        everything = np.arange(pieces.starts.size - 1)
        if self.method == "sample":
            self._require(sample.sample_bytes(pieces, self._n_forests), f"sampling {self._n_forests:,} forests")
        if self.method == "sample" or everything.size == 0:  # a forest: all edges are bridges
            return
        if self.method == "sketch":
            ordering = pattern.order_pieces(pieces, monitor, degree_limit=kernels.LARGEST_DEGREE)
            cuts = kernels.cut_at_degree(pieces.starts, ordering, kernels.LARGEST_DEGREE)
            is_exact = cuts.core_sizes <= 1  # nothing is left to project
        else:
            seconds = np.inf if self.method == "exact" else _AFFORDABLE_SECONDS
            ordering = pattern.order_pieces(
                pieces,
                monitor,
                work_limit=seconds / kernels.SECONDS_A_PAIR,
                core_limit=(seconds / kernels.SECONDS_A_CORE_CUBE) ** (1 / 3),
            )
            budget = self.memory_budget - self._pattern_bytes
            cuts = kernels.choose_cuts(pieces.starts, ordering, budget)
            # the cheapest pieces first, while they fit in memory and together take little time
            cheapest_first = np.argsort(cuts.seconds, kind="stable")
            spent = np.empty(cuts.seconds.size)
            spent[cheapest_first] = np.cumsum(cuts.seconds[cheapest_first])
            is_exact = (cuts.bytes <= budget) & (spent <= seconds) | (self.method == "exact")
        if is_exact.any():
            largest = int(np.argmax(np.where(is_exact, cuts.bytes, -1.0)))
            what = f"exact spanning weights (a dense core of {cuts.core_sizes[largest]:,} vertices)"
            self._require(float(cuts.bytes[largest]), what, "; method='auto' or 'sketch' needs less")
            self._exact = exact.build_structures(pieces, ordering, cuts, everything[is_exact], monitor)
        if not is_exact.all():
            low = kernels.cut_at_degree(pieces.starts, ordering, kernels.LARGEST_DEGREE).n_eliminated[~is_exact]
            self._sketch = pattern.build_structure(pieces, ordering, everything[~is_exact], low, monitor)
            self._require_projections(sketch.FEWEST_PROJECTIONS)

    @property
    def _pattern_bytes(self) -> float:
        """Memory that the analysis itself takes."""
        return 140.0 * self.graph.n_vertices + 90.0 * self.graph.n_edges

    def _require(self, size: float, what: str, hint: str = "") -> None:
        """Raise MemoryError if `size` bytes beside the analysis exceed the budget."""
        size += self._pattern_bytes
        if size > self.memory_budget:
            raise MemoryError(
                f"{what} needs {format_bytes(size)} for {self.graph.n_vertices:,} vertices and "
                f"{self.graph.n_edges:,} edges, but memory_budget is {format_bytes(self.memory_budget)}{hint}"
            )

    def _require_projections(self, n_projections: int) -> None:
        from corrvae.graphs.weights.sketch import sketch_bytes

        assert self._sketch is not None
        size = sketch_bytes(self._sketch, n_projections, self.n_threads)
        self._require(size, f"a sketch on {n_projections:,} projections")

    def _solve(self, conductances: Float[np.ndarray, " edges"] | None, monitor: Monitor) -> SpanningWeights:
        from corrvae.graphs.weights import exact, sample

        if self.method == "sample":
            weights = sample.solve_sample(
                self._pieces,
                conductances,
                n_forests=self._n_forests,
                random_state=np.random.default_rng(self.random_state),
                n_threads=self.n_threads,
                monitor=monitor,
            )
            return SpanningWeights(
                weights=self._finish(weights),
                method="sample",
                core_size=self._pieces.n_vertices,
                route=f"mean over {self._n_forests:,} random forests",
                error=self.epsilon,
                bound="Hoeffding",
                confidence=self.confidence,
                n_draws=self._n_forests,
            )
        given = np.ones(self.graph.n_edges) if conductances is None else conductances
        resistances, log_forests = exact.solve_exact(self._exact, given, self.n_threads, monitor)
        weights = given * resistances
        if self._sketch is not None:
            return self._solve_sketch(given, weights, monitor)
        core_size = max((structure.core_size for structure in self._exact), default=0)
        route = f"exact with a dense core of {core_size:,} vertices" if core_size else "exact by elimination alone"
        if conductances is not None:
            log_forests += float(np.log(conductances[self._pieces.is_bridge]).sum())
        weights = self._finish(weights)
        return SpanningWeights(
            weights=weights, method="exact", core_size=core_size, route=route, log_forests=log_forests
        )

    def _solve_sketch(
        self, conductances: Float[np.ndarray, " edges"], weights: Float[np.ndarray, " edges"], monitor: Monitor
    ) -> SpanningWeights:
        """Add sketched weights to the exact ones of other pieces."""
        from corrvae.graphs.weights.sketch import restore_sum, shorted_weights, solve_sketch

        assert self._sketch is not None
        core_size = self._sketch.core_size
        sketch = solve_sketch(
            self._sketch,
            conductances,
            epsilon=self.epsilon,
            delta=self.delta,
            random_state=np.random.default_rng(self.random_state),
            n_threads=self.n_threads,
            require_memory=self._require_projections,
            monitor=monitor,
        )
        weights += conductances * sketch.resistances
        sketched = sketch.standard_errors > 0.0  # others of the core are too close to 1 to have an error
        # Far below what is possible: closer, clipping would push up all that are estimated too low, and so the sum.
        lower = 0.25 * shorted_weights(self.graph.edges, conductances, self.graph.n_vertices)[sketched]
        total = self.graph.n_vertices - self.graph.n_connected - self._pieces.is_bridge.sum() - weights[~sketched].sum()
        weights[sketched] = restore_sum(weights[sketched], sketch.standard_errors[sketched], lower, float(total))
        route = f"sketch of a core of {core_size:,} vertices on {sketch.n_projections:,} projections"
        error = float(ndtri(1.0 - self.delta / 2.0) * sketch.standard_errors.max())
        if not sketch.converged:  # then the standard errors mean nothing
            route += ", which is too badly conditioned for its solves: use method='exact' or 'sample'"
            error = 1.0
        return SpanningWeights(
            weights=self._finish(weights),
            method="sketch",
            core_size=core_size,
            route=route,
            error=error,
            bound="standard error",
            confidence=self.confidence,
            n_draws=sketch.n_projections,
            standard_errors=sketch.standard_errors,
        )

    def _finish(self, weights: Float[np.ndarray, " edges"]) -> Float[np.ndarray, " edges"]:
        """Return weights with bridges exactly 1 and everything in (0, 1], read-only."""
        weights = np.clip(weights, np.finfo(float).tiny, 1.0)
        weights[self._pieces.is_bridge] = 1.0
        weights.flags.writeable = False
        return weights


def forests_needed(epsilon: float, delta: float) -> int:
    """Return Hoeffding's number of forests, each of which gives a number in [0, 1] for an edge."""
    return int(np.ceil(np.log(2.0 / delta) / (2.0 * epsilon**2)))


def default_budget() -> int:
    """Return half of the memory that is free, in bytes; a container's limit counts as the machine's."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        free = min(free, limit - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):  # no such file, or no limit ("max")
        pass
    return max(free, 0) // 2


def format_bytes(size: float) -> str:
    """Return a number of bytes in words: '4.9 GB', '120 MB'."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.{0 if size >= 10 * unit else 1}f} {name}"
    return f"{size:.0f} bytes"


def _check_arguments(graph: Any, method: Any, epsilon: Any, delta: Any) -> None:
    if not isinstance(graph, CorrelationGraph):
        advice = "make one with CorrelationGraph.from_edges, from_scipy, from_networkx or from_pyg"
        raise TypeError(f"graph must be a CorrelationGraph, not {type(graph).__name__}: {advice}")
    if method not in ("auto", "exact", "sketch", "sample"):
        raise ValueError(f"method must be 'auto', 'exact', 'sketch' or 'sample', not {method!r}")
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not (isinstance(value, Real) and 0.0 < float(value) < 1.0):
            raise ValueError(f"{name} must be a number between 0 and 1, not {value!r}")


def _scaled(conductances: np.ndarray) -> tuple[np.ndarray, int]:
    """Divide by a power of two, which changes no weight and no digit, so that sums stay within range; return both."""
    exponent = int(np.frexp(conductances.max())[1]) if conductances.size else 0
    scaled = np.ldexp(conductances, -exponent)
    if scaled.size and scaled.min() < np.finfo(float).tiny:
        raise ValueError(
            f"conductances from {conductances.min():.3g} to {conductances.max():.3g} differ by more than "
            "floating-point numbers can hold together; bring them closer"
        )
    return scaled, exponent
