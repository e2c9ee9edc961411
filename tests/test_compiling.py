"""Functions that numba compiles when they are first called."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Barrier

import numba
import numpy as np
import pytest
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


INNER = """
from corrvae.compiling import kernel

@kernel()
def inner(value):
    return innermost(value) + 1

@kernel()
def innermost(value):
    return 2 * value
"""
OUTER = """
from corrvae.compiling import kernel
from inner_of_{0} import inner

@kernel()
def outer(value):
    return beside(value) + inner(value)

@kernel()
def beside(value):
    return 10 * value
"""


@pytest.fixture
def outer(tmp_path, monkeypatch):
    """A kernel that nobody has called yet, of a module whose kernels call those of another."""
    name = tmp_path.name.replace("-", "_")
    (tmp_path / f"inner_of_{name}.py").write_text(INNER)
    (tmp_path / f"outer_of_{name}.py").write_text(OUTER.format(name))
    monkeypatch.syspath_prepend(tmp_path)
    return import_module(f"outer_of_{name}").outer


@pytest.fixture
def njit(monkeypatch):
    """Have something happen before each call of numba's own decorator."""
    own = numba.njit

    def be(act):
        def acting(**options):
            act()
            return own(**options)

        monkeypatch.setattr(numba, "njit", acting)

    return be


def test_threads_that_call_while_one_settles_wait_for_all_that_is_called(outer, njit):
    njit(lambda: time.sleep(0.01))

    def call(number):
        time.sleep(0.004 * number)
        return outer(number)

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(call, range(8))] == [12 * number + 1 for number in range(8)]


@pytest.mark.parametrize("made", range(4))
def test_what_stops_it_half_way_is_made_good_by_the_next_call(outer, njit, made):
    calls = iter([False] * made + [True])

    def stop():
        if next(calls, False):
            raise KeyboardInterrupt

    njit(stop)
    with pytest.raises(KeyboardInterrupt):
        outer(1)
    assert outer(1) == 13
    inner = sys.modules[outer.__module__].inner
    assert inner(1) == 3


def test_threads_that_settle_at_once_get_one_function():
    def added(value):
        return value + 2

    shared, together = kernel()(added), Barrier(8)

    def settle(_):
        together.wait()
        return shared.settle()

    with ThreadPoolExecutor(8) as pool:
        assert len({id(found) for found in pool.map(settle, range(8))}) == 1
    assert shared(1) == 3
