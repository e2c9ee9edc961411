"""Spanning weights: the share of maximal acyclic subgraphs that contain each edge.

w_e = Pr[e in T], T uniform over the maximal acyclic subgraphs, which is the effective resistance across e. With
conductances c they are drawn in proportion to the product of theirs, and w_e = c_e R_e.
"""

import os
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri

from corrvae.graphs.canonical import check_conductances
from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.weights import small
from corrvae.graphs.weights.cuts import LARGEST_DEGREE, Cuts, cut_low_degrees, plan_cuts
from corrvae.graphs.weights.exact import blas_threads, build_structures, solve_structure
from corrvae.graphs.weights.kernels.cuts import SECONDS_A_CORE_CUBE, SECONDS_A_PAIR
from corrvae.graphs.weights.kernels.symbolic import Structure
from corrvae.graphs.weights.memory import default_budget, in_words
from corrvae.graphs.weights.pattern import build_structure, order_pieces, pattern_bytes, split_into_pieces
from corrvae.graphs.weights.result import SpanningWeights
from corrvae.graphs.weights.sample import forests_needed, sample_bytes, solve_sample
from corrvae.graphs.weights.sketch import FEWEST_PROJECTIONS, sketch_bytes, solve_sketch
from corrvae.graphs.weights.tidy import restore_sum, shorted_weights
from corrvae.monitor import Monitor, watch
from corrvae.ranks import current_ranks, is_launched

_AFFORDABLE_SECONDS = 40.0  # predicted, on one core: past this `auto` sketches


@final
class SpanningPlan:
    """Spanning weights of one graph for any conductances: what depends on the pattern alone is worked out once.

    Parameters are those of `spanning_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> from corrvae import CorrelationGraph
    >>> triangle = CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2)])
    >>> plan = SpanningPlan(triangle)
    >>> plan.solve().weights.round(3)
    array([0.667, 0.667, 0.667])
    >>> plan.solve(np.array([1.0, 1.0, 2.0])).weights.round(3)
    array([0.6, 0.6, 0.8])
    """

    def __init__(
        self,
        graph: CorrelationGraph,
        *,
        method: Literal["auto", "exact", "sketch", "sample"] = "auto",
        epsilon: float = 0.05,
        delta: float = 0.05,
        simultaneous: bool = False,
        memory_budget: float | None = None,
        random_state: int | np.random.Generator | None = None,
        n_threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        _check_arguments(graph, method, epsilon, delta, memory_budget, n_threads)
        begun = time.perf_counter()
        self.graph = graph
        self.method = method
        self.epsilon = float(epsilon)
        self.confidence = 1.0 - float(delta)
        self.delta = float(delta) / max(graph.n_edges, 1) if simultaneous else float(delta)  # of one edge
        self._ranks = current_ranks()
        # what is free, and how many cores there are, differs from rank to rank, and the way taken must not
        self.memory_budget = self._ranks.tell(float(default_budget() if memory_budget is None else memory_budget))
        self.random_state = random_state
        self.n_threads = self._ranks.tell(int(n_threads or _available_cores()))
        self.progress = progress
        self._n_forests = forests_needed(self.epsilon, self.delta)
        self._require(pattern_bytes(graph), "the analysis of the graph")
        with self._ranks.agreed():
            watch(self._analyse, progress=progress)
        self._seconds = time.perf_counter() - begun

    def solve(self, conductances: Float[np.ndarray, " edges"] | None = None) -> SpanningWeights:
        """Spanning weights for these conductances; `None`: those of the graph.

        Parameters
        ----------
        conductances
            Positive and finite, in the order of ``graph.edges``.
        """
        begun = time.perf_counter()
        given = self.graph.conductances
        if conductances is not None:
            given = check_conductances(conductances, self.graph.n_edges, self._name_edge)
        scaled = None if given is None else _scaled(given)
        result = watch(lambda monitor: self._solve(scaled, monitor), progress=self.progress)
        seconds, self._seconds = self._seconds, 0.0  # the analysis is paid for once
        return replace(result, seconds=seconds + time.perf_counter() - begun)

    def _analyse(self, monitor: Monitor) -> None:
        """Decide which pieces are solved exactly and which are sketched, and work out their patterns."""
        self._pieces = pieces = split_into_pieces(self.graph)
        everything = np.arange(pieces.starts.size - 1)
        self._exact = []
        self._sketch = None
        if self.method == "sample":
            self._require(
                pattern_bytes(self.graph) + sample_bytes(pieces, self._n_forests),
                f"sampling {self._n_forests:,} forests",
            )
            return
        if everything.size == 0:  # a forest: all edges are bridges
            return
        if self.method == "sketch":
            ordering = order_pieces(pieces, monitor, degree_limit=LARGEST_DEGREE)
            cuts = cut_low_degrees(pieces, ordering)
            exact = cuts.core_sizes <= 1  # nothing is left to project
        else:
            seconds = np.inf if self.method == "exact" else _AFFORDABLE_SECONDS
            ordering = order_pieces(
                pieces,
                monitor,
                work_limit=seconds / SECONDS_A_PAIR,
                core_limit=(seconds / SECONDS_A_CORE_CUBE) ** (1 / 3),
            )
            cuts = plan_cuts(pieces, ordering, self.memory_budget - pattern_bytes(self.graph))
            exact = np.ones(everything.size, bool) if self.method == "exact" else self._affordable(cuts)
        if exact.any():
            largest = int(cuts.bytes[exact].argmax())
            self._require(
                pattern_bytes(self.graph) + float(cuts.bytes[exact].max()),
                f"exact spanning weights (a dense core of {cuts.core_sizes[exact][largest]:,} vertices)",
                "; method='auto' or 'sketch' needs less",
            )
            self._exact = build_structures(pieces, ordering, cuts, everything[exact], monitor)
        if not exact.all():
            low = cut_low_degrees(pieces, ordering)
            self._sketch = build_structure(pieces, ordering, everything[~exact], low.n_eliminated[~exact], monitor)
            self._require_sketch(self._sketch, FEWEST_PROJECTIONS)

    def _affordable(self, cuts: Cuts) -> Bool[np.ndarray, " pieces"]:
        """Pieces to solve exactly: the cheapest first, while they fit in memory and together take little time."""
        fits = pattern_bytes(self.graph) + cuts.bytes <= self.memory_budget
        cheapest_first = np.argsort(cuts.seconds, kind="stable")
        spent = np.empty(cuts.seconds.size)
        spent[cheapest_first] = np.cumsum(cuts.seconds[cheapest_first])
        return fits & (spent <= _AFFORDABLE_SECONDS)

    def _require(self, size: float, what: str, way_out: str = "") -> None:
        if size > self.memory_budget:
            raise MemoryError(
                f"{what} needs {in_words(size)} for {self.graph.n_vertices:,} vertices and {self.graph.n_edges:,} "
                f"edges, but memory_budget is {in_words(self.memory_budget)}"
                f"{way_out}"
            )

    def _require_sketch(self, structure: Structure, n_projections: int) -> None:
        needed = pattern_bytes(self.graph) + sketch_bytes(structure, n_projections, self.n_threads)
        self._require(needed, f"a sketch on {n_projections:,} projections")

    def _solve(self, conductances: Float[np.ndarray, " edges"] | None, monitor: Monitor) -> SpanningWeights:
        random_state = np.random.default_rng(self.random_state)
        if self.method == "sample":
            return self._solve_by_sampling(conductances, random_state, monitor)
        given = np.ones(self.graph.n_edges) if conductances is None else conductances
        sizes = [structure.columns.size - 1 - structure.first for structure in self._exact]
        weights = given * self._solve_exactly(given, any(sizes), monitor)
        if self._sketch is None:
            core_size = max(sizes, default=0)
            route = f"exact with a dense core of {core_size:,} vertices" if core_size else "exact by elimination alone"
            return SpanningWeights(weights=self._finished(weights), method="exact", core_size=core_size, route=route)
        sketch = solve_sketch(
            self._sketch,
            given,
            epsilon=self.epsilon,
            delta=self.delta,
            random_state=random_state,
            n_threads=self.n_threads,
            require_memory=partial(self._require_sketch, self._sketch),
            monitor=monitor,
            ranks=self._ranks,
        )
        sketched = sketch.standard_errors > 0.0
        # Far below what is possible: closer, clipping would push up all that are estimated too low, and so the sum.
        lower = 0.25 * shorted_weights(self.graph.edges, given, self.graph.n_vertices)[sketched]
        total = self.graph.n_vertices - self.graph.n_components - self._pieces.is_bridge.sum() - weights.sum()
        estimates = (given * sketch.resistances)[sketched]
        weights[sketched] = restore_sum(estimates, sketch.standard_errors[sketched], lower, float(total))
        route = f"sketch of a core of {sketch.core_size:,} vertices on {sketch.n_projections:,} projections"
        error = float(ndtri(1.0 - self.delta / 2.0) * sketch.standard_errors.max())
        if not sketch.converged:  # then the standard errors mean nothing
            route += ", which is too badly conditioned for its solves: use method='exact' or 'sample'"
            error = 1.0
        return SpanningWeights(
            weights=self._finished(weights),
            method="sketch",
            core_size=sketch.core_size,
            route=route,
            error=error,
            bound="standard error",
            confidence=self.confidence,
            n_draws=sketch.n_projections,
            standard_errors=sketch.standard_errors,
        )

    def _solve_exactly(
        self, conductances: Float[np.ndarray, " edges"], dense: bool, monitor: Monitor
    ) -> Float[np.ndarray, " edges"]:
        """Resistances of the pieces that are not sketched.

        Where there are several ranks rank 0 computes them: the others would do no less work, with a core each.
        """
        resistances = np.zeros(conductances.size)
        if not self._exact:
            return resistances
        with self._ranks.agreed():
            if self._ranks.is_first:
                with blas_threads(self.n_threads, monitor) if dense else nullcontext():
                    for structure in self._exact:
                        solve_structure(structure, conductances, resistances, monitor)
        return self._ranks.hand_out(resistances)

    def _solve_by_sampling(
        self,
        conductances: Float[np.ndarray, " edges"] | None,
        random_state: np.random.Generator,
        monitor: Monitor,
    ) -> SpanningWeights:
        weights = solve_sample(
            self._pieces,
            conductances,
            n_forests=self._n_forests,
            random_state=random_state,
            n_threads=self.n_threads,
            monitor=monitor,
            ranks=self._ranks,
        )
        return SpanningWeights(
            weights=self._finished(weights),
            method="sample",
            core_size=self._pieces.n_vertices,
            route=f"mean over {self._n_forests:,} random forests",
            error=self.epsilon,
            bound="Hoeffding",
            confidence=self.confidence,
            n_draws=self._n_forests,
        )

    def _name_edge(self, edge: int) -> str:
        i, j = self.graph.id_pairs[edge].tolist()
        return f"({i!r}, {j!r})"

    def _finished(self, weights: Float[np.ndarray, " edges"]) -> Float[np.ndarray, " edges"]:
        """Bridges exactly 1, everything in (0, 1], read-only."""
        weights = np.clip(weights, np.finfo(float).tiny, 1.0)
        weights[self._pieces.is_bridge] = 1.0
        weights.flags.writeable = False
        return weights


def spanning_weights(
    graph: CorrelationGraph,
    method: Literal["auto", "exact", "sketch", "sample"] = "auto",
    *,
    epsilon: float = 0.05,
    delta: float = 0.05,
    simultaneous: bool = False,
    memory_budget: float | None = None,
    random_state: int | np.random.Generator | None = None,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> SpanningWeights:
    """Share of the maximal acyclic subgraphs of a graph that contain each edge.

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
        For ``sketch`` and ``sample``: each weight is off by at most `epsilon` with probability ``1 - delta``. Sampling
        promises that by Hoeffding's inequality, the sketch by its estimated standard errors.
    simultaneous
        Ask that of all edges at once instead of each one.
    memory_budget
        Bytes that may be used; by default half of what is free. Over it, a ``MemoryError`` tells what would be needed.
    random_state
        Seed or generator; a generator moves on, so that another solve differs. The same seed gives the same bits,
        whatever the number of threads and ranks, for ``sketch`` and ``sample``; ``exact`` gives the same bits for the
        same number of threads.
    n_threads
        Cores to use; by default all that the process may use, divided by the launcher's processes on the machine.
    progress
        Show a progress bar for anything over two seconds; by default when standard error is a terminal.

    Returns
    -------
    SpanningWeights
        The weights in edge order, with the way taken, the error bound and the time.

    Notes
    -----
    In a process group of torch, all ranks call this with the same arguments, and all receive the result: solves and
    forests are divided among them, and rank 0 does what cannot be divided. Inside ``corrvae.ranks.alone()`` a rank
    works by itself.

    Examples
    --------
    >>> from corrvae import CorrelationGraph, spanning_weights
    >>> graph = CorrelationGraph.from_edges([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])
    >>> spanning_weights(graph).weights.round(3)
    array([0.667, 0.667, 0.667, 1.   ])
    """
    _check_arguments(graph, method, epsilon, delta, memory_budget, n_threads)
    if method in ("auto", "exact") and _is_small(graph) and memory_budget is None:
        begun = time.perf_counter()
        weights, core_size = small.small_weights(graph), graph.n_vertices - graph.n_components
        route = f"exact: dense inverse of {core_size:,} vertices"
        return SpanningWeights(
            weights=weights, method="exact", core_size=core_size, route=route, seconds=time.perf_counter() - begun
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


def _check_arguments(graph: Any, method: Any, epsilon: Any, delta: Any, memory_budget: Any, n_threads: Any) -> None:
    if not isinstance(graph, CorrelationGraph):
        raise TypeError(
            f"graph must be a CorrelationGraph, not {type(graph).__name__}: make one with CorrelationGraph.from_edges, "
            "from_scipy, from_networkx, from_pyg or from_file"
        )
    if method not in ("auto", "exact", "sketch", "sample"):
        raise ValueError(f"method must be 'auto', 'exact', 'sketch' or 'sample', not {method!r}")
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not (_is_real(value) and 0.0 < value < 1.0):
            raise ValueError(f"{name} must be a number between 0 and 1, not {value!r}")
    if not (memory_budget is None or (_is_real(memory_budget) and 0.0 < memory_budget < np.inf)):
        raise ValueError(f"memory_budget must be a positive number of bytes, not {memory_budget!r}")
    if not (n_threads is None or (_is_whole(n_threads) and n_threads >= 1)):
        raise ValueError(f"n_threads must be a whole number of at least 1, not {n_threads!r}")


def _is_small(graph: CorrelationGraph) -> bool:
    return graph.conductances is None and graph.n_edges > 0 and graph.n_vertices <= small.LARGEST


def _is_real(value: Any) -> bool:
    return isinstance(value, Real)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral)


def _scaled(conductances: Float[np.ndarray, " edges"]) -> Float[np.ndarray, " edges"]:
    """Divide by a power of two, which changes no weight and no digit, so that sums stay within range."""
    scaled = np.ldexp(conductances, -np.frexp(conductances.max())[1]) if conductances.size else conductances
    if scaled.size and scaled.min() < np.finfo(float).tiny:
        raise ValueError(
            f"conductances from {conductances.min():.3g} to {conductances.max():.3g} differ by more than "
            "floating-point numbers can hold together; bring them closer"
        )
    return scaled


def _available_cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))) if is_launched() else cores
