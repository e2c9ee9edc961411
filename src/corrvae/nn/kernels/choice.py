"""Whether kernels pay off.

To compile them takes two seconds, once on a machine, which is more than a training on few rows saves by them. It
therefore does without those whose place a few tensor operations can take.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# With the estimator's default epochs, a training on fewer rows makes a thousand steps and saves half a second.
_ENOUGH_ROWS = 2_000
_used: ContextVar[bool] = ContextVar("_used", default=True)


def pay_off(n_rows: int) -> bool:
    """Say whether work on so many rows saves by kernels what it takes to compile them.

    It depends on nothing else, so that a run that is resumed makes the same choice.

    Examples
    --------
    >>> pay_off(1_000), pay_off(100_000)
    (False, True)
    """
    return n_rows >= _ENOUGH_ROWS


def used() -> bool:
    """Say whether kernels are to be used where there is a choice; they are, unless it is said otherwise."""
    return _used.get()


@contextmanager
def using(wanted: bool) -> Iterator[None]:
    """Use kernels for a while where there is a choice, or do without.

    Examples
    --------
    >>> with using(False):
    ...     used()
    False
    """
    token = _used.set(wanted)
    try:
        yield
    finally:
        _used.reset(token)
