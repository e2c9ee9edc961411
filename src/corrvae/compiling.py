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
    place of all kernels that this one's module knows.

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
        return self.settle()(*args, **kwargs)

    def settle(self) -> Callable[_Inputs, _Output]:
        """Give numba's function, which compiles itself for each new set of types."""
        if self._settled is None:
            import numba  # noqa: F401  (before the lock: it takes long)

            with _settling:
                _settle_module(self._function.__globals__)
                if self._settled is None:  # it stands under no name there
                    self._settled = self._make()
        return self._settled

    def _make(self) -> Callable[_Inputs, _Output]:
        from numba import njit

        return njit(cache=True, nogil=True, **self._options)(self._function)


def _settle_module(known: dict[str, Any]) -> None:
    """Put numba's functions in the place of the kernels that a module knows, after those of the modules it has them of.

    Whoever sees one of numba's functions may call it at once. So all of a module are put in at once, when all that they
    call are there; an error or Ctrl-C before leaves kernels, which the next call settles.
    """
    kernels = {name: thing for name, thing in known.items() if isinstance(thing, Kernel)}
    for thing in kernels.values():
        if thing._settled is None and thing._function.__globals__ is not known:
            _settle_module(thing._function.__globals__)
    made = {thing: thing._settled or thing._make() for thing in kernels.values()}
    known.update({name: made[thing] for name, thing in kernels.items()})
    for thing, settled in made.items():
        thing._settled = settled


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
