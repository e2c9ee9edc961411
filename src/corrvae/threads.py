"""How many threads torch computes with."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Up to here a step's products take a few milliseconds on one thread.
_SMALL_MODEL = 250_000
_FEW_ROWS = 2_000
_entering = threading.Lock()
_inside: list[int] = []  # threads, as often as they have entered
_found_first: dict[str, int] = {}


def worth_having(n_rows: int, n_parameters: int) -> int | None:
    """Say with how many threads a model with independent posteriors is trained; ``None``: with all that there are.

    Threads wait for each other after every product, and one that another program keeps from its core holds up all: a
    step of small products then takes three times as long as on one thread, while on idle cores it saves little. It
    depends on nothing else, so that a run that is resumed makes the same choice.

    Parameters
    ----------
    n_rows
        How many rows there are to train on; many take long enough for threads to be worth their risk.
    n_parameters
        How many numbers are learned.

    Examples
    --------
    >>> worth_having(1_000, 120_000)
    1
    >>> worth_having(100_000, 120_000), worth_having(1_000, 10_000_000)
    (None, None)
    """
    return 1 if n_rows < _FEW_ROWS and n_parameters <= _SMALL_MODEL else None


@contextmanager
def computing_with(count: int | None) -> Iterator[None]:
    """Let torch compute with so many threads for a while; ``None``: with as many as it does.

    Each thread of a program has a number of its own, and a new one takes that which was set last, by whichever thread.
    So one that has this very number while others are inside, where it may be theirs, leaves with what the first found.

    Examples
    --------
    >>> import torch
    >>> with computing_with(1):
    ...     torch.get_num_threads()
    1
    """
    if count is None:
        yield
        return
    import torch

    me = threading.get_ident()
    with _entering:
        before = torch.get_num_threads()
        first = _found_first.setdefault("count", before)
        if before == count and me not in _inside:
            before = first
        _inside.append(me)
        torch.set_num_threads(count)
    try:
        yield
    finally:
        with _entering:
            torch.set_num_threads(before)
            _inside.remove(me)
            if not _inside:
                _found_first.clear()
