import numpy as np
import pytest

from corrvae.scoring.kernels.log_odds import fill_block, split_exponents
from support.literal_scores import literal_scores, random_points


@pytest.mark.parametrize("group", [1, 3, 8])
@pytest.mark.parametrize("first_column", [0, 5])
def test_blocks_are_minus_the_log_odds(group, first_column):
    left, right, tau = random_points(4, 21, 0), random_points(600, 21, 1), np.linspace(0.0, 0.999, 21)
    variance, other = (np.minimum(part.stddev**2, 1.0).astype(np.float32) for part in (left, right))
    columns = np.ascontiguousarray(right.mean.T), np.ascontiguousarray(other.T)
    block = np.empty((4, 600 - first_column), np.float32)
    fill_block(left.mean, variance, *columns, first_column, tau, group, block)
    expected = -literal_scores("log_odds", left, right, tau)[:, first_column:]
    np.testing.assert_allclose(block, expected, rtol=1e-4, atol=1e-4)


def test_exponents_are_split_off():
    numbers = np.array([1.0, 0.75, 1e-30, 3e-38, 0.5], np.float32)
    product, exponents = numbers.copy(), np.array([0.0, 0.0, 0.0, 0.0, -4.0], np.float32)
    split_exponents(product, exponents)
    assert ((product >= 1) & (product < 2)).all()
    np.testing.assert_array_equal(np.ldexp(product, exponents.astype(int)), numbers * [1, 1, 1, 1, 2.0**-4])
