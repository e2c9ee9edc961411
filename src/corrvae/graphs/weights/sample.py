"""Sampled spanning weights: the mean of what many random forests say of each edge."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float, Int, UInt

from corrvae.graphs.weights.kernels.wilson import accumulate_forests, alias_tables, walk_order
from corrvae.graphs.weights.pattern import Pieces
from corrvae.monitor import Monitor
from corrvae.ranks import Ranks

_STREAMS = 8  # fixed, so that the sums do not depend on the number of threads, nor of ranks


def forests_needed(epsilon: float, delta: float) -> int:
    """Hoeffding's number of forests: each says a number in [0, 1] of an edge.

    Examples
    --------
    >>> forests_needed(0.1, 0.05)
    185
    """
    return int(np.ceil(np.log(2.0 / delta) / (2.0 * epsilon**2)))


def sample_bytes(pieces: Pieces, n_forests: int) -> float:
    """Memory that `solve_sample` will take."""
    keys = 16.0 * n_forests
    return keys + 8.0 * _STREAMS * pieces.is_bridge.size + 60.0 * _STREAMS * pieces.n_vertices + 32.0 * pieces.kept.size


def neighbor_tables(
    pieces: Pieces, conductances: Float[np.ndarray, " edges"] | None
) -> tuple[Float[np.ndarray, " entries"], Float[np.ndarray, " table"], Int[np.ndarray, " table"]]:
    """Conductance of each entry of the adjacency lists, and alias tables to draw from them (empty when all are one)."""
    if conductances is None:
        return np.ones(pieces.neighbors.size), np.empty(0), np.empty(0, np.int64)
    values = conductances[pieces.edge_of]
    return values, *alias_tables(pieces.pointers, values)


def solve_sample(
    pieces: Pieces,
    conductances: Float[np.ndarray, " edges"] | None,
    *,
    n_forests: int,
    random_state: np.random.Generator,
    n_threads: int,
    monitor: Monitor,
    ranks: Ranks | None = None,
) -> Float[np.ndarray, " edges"]:
    """Estimate the weight of every edge that is not a bridge; their sum is exact. Ranks divide the streams."""
    ranks = ranks or Ranks()
    monitor.phase("sampling forests", n_forests)
    with ranks.agreed():
        values, threshold, alias = neighbor_tables(pieces, conductances)
        order = walk_order(pieces.pointers, pieces.neighbors, pieces.starts)
    keys = ranks.hand_out(random_state.integers(1, 2**63, size=n_forests, dtype=np.uint64))
    streams = np.array_split(keys, _STREAMS)[ranks.share(_STREAMS)]

    def run(stream: UInt[np.ndarray, " keys"]) -> Float[np.ndarray, " edges"]:
        total = np.zeros(pieces.is_bridge.size)
        accumulate_forests(
            pieces.pointers,
            pieces.neighbors,
            pieces.edge_of,
            values,
            threshold,
            alias,
            order,
            pieces.starts,
            stream,
            total,
            monitor.control,
        )
        return total

    total = np.zeros(pieces.is_bridge.size)
    with ThreadPoolExecutor(n_threads) as pool:
        parts = pool.map(run, streams)
        if ranks.count > 1:
            with ranks.agreed():
                mine = np.array(list(parts)).reshape(len(streams), total.size)
                monitor.check()
            parts = itertools.chain.from_iterable(ranks.gather(mine))
        for part in parts:
            total += part
    monitor.check()
    return total / n_forests
