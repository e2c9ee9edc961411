import pytest

from corrvae.graphs.weights import plan


@pytest.fixture(scope="module", autouse=True)
def no_small_graphs():
    """Solve the small graphs of these tests by the method of large ones; the dense inverse has tests of its own."""
    largest, plan.LARGEST_DENSE = plan.LARGEST_DENSE, 0
    yield
    plan.LARGEST_DENSE = largest
