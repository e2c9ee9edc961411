"""Exact spanning weights: eliminate the sparse part, invert the dense core, substitute back."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack

from corrvae.graphs.weights.kernels import dense
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

# Below this the inverse of the core may lose more than nine of its sixteen digits; star-mesh elimination takes over.
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
    resistances = np.zeros(conductances.size)
    has_core = any(structure.core_size for structure in structures)
    with limit_blas_threads(n_threads, monitor) if has_core else nullcontext():
        log_z = [_solve_structure(structure, conductances, resistances, monitor) for structure in structures]
    return resistances, float(sum(log_z))


def _solve_structure(
    structure: Structure, conductances: np.ndarray, resistances: np.ndarray, monitor: Monitor
) -> float:
    n_positions = structure.columns.size - 1
    monitor.phase("eliminating", n_positions)
    elimination = eliminate(structure, conductances, monitor.control)
    monitor.check()
    core, log_z = np.zeros((0, 0)), _log_pivots(elimination.inverse_sums)
    if structure.core_size:
        monitor.phase(f"core of {structure.core_size:,} vertices")
        core = dense_core(structure, elimination, conductances, monitor.control)
        monitor.check()
        log_z += invert_core(core, monitor)
    monitor.phase("substituting back", n_positions)
    back_substitute(structure, elimination, core, np.zeros((0, 0), np.float32), monitor.control)
    monitor.check()
    read_resistances(structure, elimination.values, core, resistances)
    return log_z


def _log_pivots(inverse_sums: Float[np.ndarray, " positions"]) -> float:
    """Return the sum of log D; the last vertex of a piece, and what is not eliminated, has none."""
    return -float(np.log(inverse_sums[inverse_sums > 0.0]).sum())


def invert_core(core: Float[np.ndarray, "k k"], monitor: Monitor) -> float:
    """Turn the conductances of a core into resistances, in place, and return its log Z.

    By Cholesky factor and inverse; by star-mesh elimination where the conductances are scaled too badly for that.
    """
    if core.shape[0] == 1:
        return 0.0
    scale = np.empty(core.shape[0])
    dense.normalised_laplacian(core, scale)
    monitor.check()
    # The lower triangle in C order is the upper one in Fortran's.
    factorise, condition = lapack.get_lapack_funcs(("potrf", "pocon"), (core,))
    _, failed = factorise(core.T, lower=0, overwrite_a=1, clean=0)
    monitor.check()
    if failed or condition(core.T, 2.0, uplo="U")[0] < _SMALLEST_RECIPROCAL_CONDITION:
        dense.restore_conductances(core)
        monitor.phase(f"core of {core.shape[0]:,} vertices, badly scaled", core.shape[0])
        pivots = dense.star_mesh_resistances(core, monitor.control)
        monitor.check()
        return _log_pivots(pivots)
    # det(D^-1/2 L D^-1/2 + u u') is Z times sum(d) / product(d), with d = scale^-2
    log_z = 2.0 * np.log(core.diagonal() / scale).sum() - np.log(np.sum(scale**-2.0))
    _invert_from_factor(core)
    monitor.check()
    dense.resistances_from_inverse(core, scale)
    return float(log_z)


def _invert_from_factor(core: np.ndarray) -> None:
    """Run LAPACK's dpotri, in place, on the lower triangle.

    Called through its address because SciPy's wrapper holds the interpreter's lock, and with it Ctrl-C, for minutes.
    """
    from numba.extending import get_cython_function_address

    pointer = ctypes.POINTER(ctypes.c_int)
    address = get_cython_function_address("scipy.linalg.cython_lapack", "dpotri")
    dpotri = ctypes.CFUNCTYPE(None, ctypes.c_char_p, pointer, ctypes.c_void_p, pointer, pointer)(address)
    order, status = ctypes.c_int(core.shape[0]), ctypes.c_int(0)
    dpotri(b"U", ctypes.byref(order), core.ctypes.data, ctypes.byref(order), ctypes.byref(status))
    if status.value != 0:
        raise ArithmeticError(f"the inverse of a core of {core.shape[0]} vertices failed at row {status.value - 1}")


@contextmanager
def limit_blas_threads(n_threads: int, monitor: Monitor) -> Iterator[None]:
    """Limit the linear algebra library to this many threads.

    The limit belongs to the whole process, so one caller at a time may change it; others wait for their turn.
    """
    from threadpoolctl import threadpool_limits

    while not _BLAS.acquire(timeout=0.1):
        monitor.check()
    try:
        with threadpool_limits(n_threads, user_api="blas"):
            yield
    finally:
        _BLAS.release()
