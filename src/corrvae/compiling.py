"""Kernels: functions that numba compiles when they are first called. Until then, numba itself is not imported."""

from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar, final

_Inputs = ParamSpec("_Inputs")
_Output = TypeVar("_Output")
_settling = RLock()


@final
class Kernel(Generic[_Inputs, _Output]):
    """A function that is compiled at its first call.

    What numba compiles may call nothing but what numba has compiled. So the first call puts numba's functions in the
    place of all kernels that this one's module knows, and of those that they know.

    Parameters
    ----------
    function
        What is compiled.
    options
        Of `numba.njit`.
    """

    def __init__(self, function: Callable[_Inputs, _Output], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options
        self._settled: Callable[_Inputs, _Output] | None = None
        update_wrapper(self, function)

    def __call__(self, *args: _Inputs.args, **kwargs: _Inputs.kwargs) -> _Output:
        """Compile the function, or take it from numba's cache, and call it."""
        settled = self._settled
        return (self.settle() if settled is None else settled)(*args, **kwargs)

    def settle(self) -> Callable[_Inputs, _Output]:
        """Give numba's function, which compiles itself for each new set of types."""
        with _settling:
            if self._settled is None:
                from numba import njit

                self._settled = njit(cache=True, nogil=True, **self._options)(self._function)
                known = self._function.__globals__
                known |= {name: thing.settle() for name, thing in known.items() if isinstance(thing, Kernel)}
            return self._settled


def kernel(**options: Any) -> Callable[[Callable[_Inputs, _Output]], Kernel[_Inputs, _Output]]:
    """Mark a function as one that numba compiles, keeps on disk, and runs without the interpreter's lock.

    Parameters
    ----------
    options
        More of `numba.njit`.

    Examples
    --------
    >>> @kernel()
    ... def add_one(number):
    ...     return number + 1
    >>> add_one.__name__
    'add_one'
    """

    def mark(function: Callable[_Inputs, _Output]) -> Kernel[_Inputs, _Output]:
        return Kernel(function, options)

    return mark
