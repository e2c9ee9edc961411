"""Sampled spanning weights: the mean over many random forests."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs.weights.kernels import wilson
from corrvae.graphs.weights.kernels.adjacency import Pieces, breadth_first
from corrvae.graphs.weights.progress import Monitor

_STREAMS = 8  # fixed, so that the sums do not depend on the number of threads


def sample_bytes(pieces: Pieces, n_forests: int) -> float:
    """Return the memory that `solve_sample` will take."""
    keys = 16.0 * n_forests
    return keys + 8.0 * _STREAMS * pieces.is_bridge.size + 60.0 * _STREAMS * pieces.n_vertices + 32.0 * pieces.kept.size


def walk_order(pieces: Pieces) -> Int[np.ndarray, " vertices"]:
    """Return each piece's vertex of highest degree, its root, first; the others breadth first from it."""
    degrees, begins = np.diff(pieces.pointers), pieces.starts[:-1]
    highest = np.repeat(np.maximum.reduceat(degrees, begins), np.diff(pieces.starts))
    candidates = np.flatnonzero(degrees == highest)
    return breadth_first(pieces.pointers, pieces.neighbors, candidates[np.searchsorted(candidates, begins)])[0]


def neighbor_tables(
    pieces: Pieces, conductances: Float[np.ndarray, " edges"] | None
) -> tuple[Float[np.ndarray, " entries"], Float[np.ndarray, " table"], Int[np.ndarray, " table"]]:
    """Return the conductance of each entry of the adjacency lists, and alias tables (empty when all are one)."""
    if conductances is None:
        return np.ones(pieces.neighbors.size), np.empty(0), np.empty(0, np.int64)
    values = conductances[pieces.edge_of]
    return values, *wilson.alias_tables(pieces.pointers, values)


def solve_sample(
    pieces: Pieces,
    conductances: Float[np.ndarray, " edges"] | None,
    *,
    n_forests: int,
    random_state: np.random.Generator,
    n_threads: int,
    monitor: Monitor,
) -> Float[np.ndarray, " edges"]:
    """Estimate the weight of every edge that is not a bridge; their sum is exact."""
    monitor.phase("sampling forests", n_forests)
    values, threshold, alias = neighbor_tables(pieces, conductances)
    order = walk_order(pieces)
    keys = random_state.integers(1, 2**63, size=n_forests, dtype=np.uint64)

    def run(stream: np.ndarray) -> np.ndarray:
        total = np.zeros(pieces.is_bridge.size)
        wilson.accumulate_forests(pieces, values, threshold, alias, order, stream, total, monitor.control)
        return total

    total = np.zeros(pieces.is_bridge.size)
    with ThreadPoolExecutor(n_threads) as pool:
        for part in pool.map(run, np.array_split(keys, _STREAMS)):
            total += part
    monitor.check()
    return total / n_forests
