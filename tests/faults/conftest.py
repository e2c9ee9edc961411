"""One process, with everything imported, whose children are killed."""

import os

import pytest

import fragile


@pytest.fixture(scope="session")
def helper():
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    with fragile.Helper() as process:
        yield process
