"""A command that the launcher runs in several processes: they work together, and one of them speaks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corrvae.ranks import Ranks


def speaks() -> bool:
    """Say whether this process is the one that writes and speaks: rank 0, or one that was started by itself.

    Examples
    --------
    >>> speaks()
    True
    """
    import os

    from corrvae.ranks import is_launched

    return not is_launched() or os.environ["RANK"] == "0"


@contextmanager
def as_ranks() -> Iterator["Ranks"]:
    """Join the processes that the launcher started with this one; what one fails by, all of them end with.

    Examples
    --------
    >>> with as_ranks() as ranks:
    ...     ranks.count
    1
    """
    import typer

    from corrvae.ranks import Ranks, is_launched, join_ranks

    if not is_launched():
        yield Ranks()
        return
    with join_ranks() as ranks:
        ended: typer.Exit | None = None
        with ranks.agreed():
            try:
                yield ranks
            except typer.Exit as early:  # of the one that speaks, whose reader has left: no failure
                ended = early
        if ended is not None:
            raise ended
