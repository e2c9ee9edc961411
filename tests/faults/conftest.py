from collections.abc import Iterator

import pytest

from nursery import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A process that forks children which may be killed; starting it takes a few seconds."""
    with Nursery("fragile") as started:
        yield started
