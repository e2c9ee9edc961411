"""Exact spanning weights: eliminate the sparse part, invert the dense core, substitute back."""

import threading
from contextlib import ExitStack

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from corrvae.graphs.weights.kernels.adjacency import Pieces
from corrvae.graphs.weights.kernels.elimination import (
    Structure,
    back_substitute,
    dense_core,
    eliminate,
    read_resistances,
)
from corrvae.graphs.weights.kernels.ordering import Cuts, Ordering
from corrvae.graphs.weights.pattern import build_structure
from corrvae.graphs.weights.progress import Monitor

# Below this the inverse of the core may lose more than nine of its sixteen digits; star-mesh elimination continues.
_SMALLEST_RECIPROCAL_CONDITION = 1e-7
_BLAS = threading.Lock()


def build_structures(
    pieces: Pieces, ordering: Ordering, cuts: Cuts, chosen: Int[np.ndarray, " chosen"], monitor: Monitor
) -> list[Structure]:
    """Return one structure for all chosen pieces that are eliminated to the end, and one for each that has a core."""
    has_core = cuts.core_sizes[chosen] > 0
    groups = [chosen[~has_core], *chosen[has_core].reshape(-1, 1)]
    return [
        build_structure(pieces, ordering, group, cuts.n_eliminated[group], monitor)
        for group in groups
        if group.size > 0
    ]


def solve_exact(
    structures: list[Structure], conductances: Float[np.ndarray, " edges"], n_threads: int, monitor: Monitor
) -> tuple[Float[np.ndarray, " edges"], float]:
    """Return the resistance across every edge of the structures, zero for other edges, and log Z of the structures.

    Z is the sum over the spanning trees of each piece of the products of their conductances. By the matrix tree theorem
    it is the product of the pivots D of the elimination, and of the same for the core.
    """
    resistances, limit = np.zeros(conductances.size), ExitStack()
    if any(structure.core_size for structure in structures):
        limit.enter_context(_BLAS)  # the limit is that of the whole process
        limit.enter_context(threadpool_limits(n_threads, user_api="blas"))
    with limit:
        log_z = [_solve_structure(structure, conductances, resistances, monitor) for structure in structures]
    return resistances, float(sum(log_z))


def _solve_structure(
    structure: Structure, conductances: np.ndarray, resistances: np.ndarray, monitor: Monitor
) -> float:
    n_positions = structure.columns.size - 1
    monitor.phase("eliminating", n_positions)
    elimination = eliminate(structure, conductances, monitor.control)
    monitor.check()
    core, log_z = np.zeros((0, 0)), 0.0
    if structure.core_size:
        monitor.phase(f"core of {structure.core_size:,} vertices")
        core = dense_core(structure, elimination, conductances, monitor.control)
        monitor.check()
        log_z = invert_core(core, monitor)
        if log_z is None:
            return _solve_structure(_to_the_end(structure), conductances, resistances, monitor)
    monitor.phase("substituting back", n_positions)
    back_substitute(structure, elimination, core, np.zeros((0, 0), np.float32), monitor.control)
    monitor.check()
    read_resistances(structure, elimination.values, core, resistances)
    # the last vertex of a piece, and what is not eliminated, has no pivot
    return log_z - float(np.log(elimination.inverse_sums[elimination.inverse_sums > 0.0]).sum())


def _to_the_end(structure: Structure) -> Structure:
    """Return the structure with its core as one more supernode."""
    n, columns = structure.columns.size - 1, structure.columns.copy()
    columns[structure.first + 1 :] += np.cumsum(np.arange(structure.core_size)[::-1])
    return structure._replace(
        starts=np.append(structure.starts, structure.first),
        ends=np.append(structure.ends, n),
        tail_pointers=np.append(structure.tail_pointers, structure.tail_pointers[-1]),
        columns=columns,
        first=n,
    )


def invert_core(core: Float[np.ndarray, "k k"], monitor: Monitor) -> float | None:
    """Turn the conductances of a core into resistances, in place, and return its log Z.

    ``None`` if the conductances are scaled too badly for Cholesky factor and inverse. What is inverted is
    D^-1/2 L D^-1/2 + u u' with u = D^1/2 1 / |D^1/2 1|: the shift moves the one zero eigenvalue to 1, between the
    others, which lie in (0, 2]; it cancels in every resistance. It is the lower triangle that is read and written.
    """
    if core.shape[0] == 1:
        return 0.0
    degrees = core.sum(axis=0)
    total, scale = float(sum(degrees.tolist())), 1.0 / np.sqrt(degrees)
    for i, row in enumerate(core):
        row[:i] = 1.0 / (scale[i] * scale[:i] * total) - row[:i] * scale[i] * scale[:i]
        row[i] = 1.0 + 1.0 / (scale[i] * scale[i] * total)
    monitor.check()
    # The lower triangle in C order is the upper one in Fortran's.
    factorise, condition, invert = lapack.get_lapack_funcs(("potrf", "pocon", "potri"), (core,))
    _, failed = factorise(core.T, lower=0, overwrite_a=1, clean=0)
    monitor.check()
    if failed or condition(core.T, 2.0, uplo="U")[0] < _SMALLEST_RECIPROCAL_CONDITION:
        return None
    # det(D^-1/2 L D^-1/2 + u u') is Z times sum(d) / product(d), with d = scale^-2
    log_z = 2.0 * np.log(core.diagonal() / scale).sum() - np.log(np.sum(scale**-2.0))
    invert(core.T, lower=0, overwrite_c=1)
    monitor.check()
    own = core.diagonal() * scale * scale
    for i, row in enumerate(core):
        row[:i] = core[:i, i] = own[i] + own[:i] - 2.0 * row[:i] * scale[i] * scale[:i]
        row[i] = 0.0
    return float(log_z)
