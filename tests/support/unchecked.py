"""Call the library as users do, without the checks of annotations that tests put around every function."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import config


@contextmanager
def unchecked() -> Iterator[None]:
    """Pass arguments of the wrong type to the library's own checks."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", before)
