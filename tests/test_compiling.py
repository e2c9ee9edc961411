"""Functions that numba compiles when they are first called."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from numba.core.registry import CPUDispatcher

from corrvae.compiling import Kernel, kernel
from corrvae.graphs.weights.kernels.symbolic import grown


@kernel()
def doubled(values):
    """Twice the values."""
    return 2 * _one(values)


@kernel(error_model="numpy")
def _one(values):
    return values / values * values


@kernel()
def grown_and_doubled(values):
    return doubled(grown(values, len(values) + 1)[: len(values)])


@kernel()
def apart(values):
    return values - 1


def test_a_kernel_calls_kernels_of_its_own_module_and_of_others():
    values = np.array([1.0, 2.0, 4.0])
    assert isinstance(_one, Kernel)
    np.testing.assert_array_equal(grown_and_doubled(values), [2.0, 4.0, 8.0])
    # from now on this module has numba's own functions
    assert all(isinstance(function, CPUDispatcher) for function in (grown_and_doubled, doubled, _one, grown, apart))
    np.testing.assert_array_equal(doubled(values), [2.0, 4.0, 8.0])


def test_a_kernel_that_was_taken_before_is_the_same_one():
    def plain(value):
        return value + 1

    before = kernel()(plain)
    assert before(1) == 2
    assert before.settle() is before.settle()
    assert before(2.0) == 3.0


def test_a_kernel_keeps_name_documentation_and_options():
    def divided(value):
        """What it does."""
        return 1.0 / value

    as_numpy_does = kernel(error_model="numpy")(divided)
    assert (as_numpy_does.__name__, as_numpy_does.__doc__) == ("divided", "What it does.")
    assert as_numpy_does(0.0) == np.inf


def test_threads_that_call_at_once_get_one_function():
    def added(value):
        return value + 2

    shared, together = kernel()(added), Barrier(8)

    def settle():
        together.wait()
        return shared.settle()

    with ThreadPoolExecutor(8) as pool:
        found = [future.result() for future in [pool.submit(settle) for _ in range(8)]]
    assert len(set(map(id, found))) == 1
    assert shared(1) == 3
