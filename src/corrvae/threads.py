"""How many threads torch computes with."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_FEW_ROWS = 2_000
_SMALL_STEP = 150_000_000  # multiplications: a few milliseconds for one thread, there and back
_entering = threading.Lock()
_inside: list[tuple[int, int]] = []  # a thread that has entered, and its number meanwhile
_found_first: dict[str, int] = {}


def worth_having(n_rows: int, n_products: int) -> int | None:
    """Say with how many threads a model is trained; ``None``: with all that there are.

    Threads wait for each other after every product, and one that another program keeps from its core holds up all: a
    step of small products then takes three times as long as on one thread, or a hundred times, while on idle cores it
    saves little. It depends on nothing else, so that a run that is resumed makes the same choice.

    Parameters
    ----------
    n_rows
        How many rows there are to train on; many take long enough for threads to be worth their risk.
    n_products
        About how many multiplications the way there takes in each step.

    Examples
    --------
    >>> worth_having(1_000, 10**7)
    1
    >>> worth_having(100_000, 10**7), worth_having(1_000, 10**9)
    (None, None)
    """
    return 1 if n_rows < _FEW_ROWS and n_products <= _SMALL_STEP else None


@contextmanager
def computing_with(count: int | None) -> Iterator[None]:
    """Let torch compute with so many threads for a while; ``None``: with as many as it does.

    Each thread of a program has a number of its own, and a new one takes that which was set last, by whichever thread.
    One that has the number of others who are inside is taken to have it from them, and has what the first of these
    found: inside, if that is not told, and afterwards.

    Examples
    --------
    >>> import torch
    >>> with computing_with(1):
    ...     torch.get_num_threads()
    1
    """
    import torch

    me = threading.get_ident()
    with _entering:
        before = torch.get_num_threads()
        first = _found_first.setdefault("count", before)
        if before in dict(_inside).values() and me not in dict(_inside):
            before = first
        entry = me, before if count is None else count
        _inside.append(entry)
        _set(entry[1])
    try:
        yield
    finally:
        with _entering:
            _set(before)
            _inside.remove(entry)
            if not _inside:
                _found_first.clear()


def _set(count: int) -> None:
    import torch

    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
