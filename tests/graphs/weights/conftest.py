import pytest

from corrvae.graphs.weights import small


@pytest.fixture(scope="module", autouse=True)
def no_small_graphs():
    """Send the small graphs of these tests the way of large ones; what is small has a test file of its own."""
    largest, small.LARGEST = small.LARGEST, 0
    yield
    small.LARGEST = largest
