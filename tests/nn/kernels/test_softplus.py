import numpy as np
import pytest

from corrvae.nn.kernels.softplus import soften


def softened(x, floor=0.0):
    outputs = np.stack([np.zeros_like(x), x], axis=1)
    slopes = np.empty((len(x), 1), np.float32)
    soften(outputs, np.float32(floor), slopes)
    assert (outputs[:, 0] == 0).all()  # the left half stays
    return outputs[:, 1], slopes[:, 0]


def test_softplus_and_its_derivative_in_single_precision():
    x = np.r_[np.linspace(-87, 100, 100_001), np.logspace(-30, 0, 1001), -np.logspace(-30, 0, 1001)].astype(np.float32)
    values, slopes = softened(x)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(values, np.logaddexp(0.0, exact), rtol=3e-7)
    np.testing.assert_allclose(slopes, 1.0 / (1.0 + np.exp(-exact)), rtol=3e-7)


def test_far_away_softplus_is_zero_or_x():
    values, slopes = softened(np.array([-np.inf, -1e30, -100.0, 100.0, 1e30, np.inf], np.float32), 1e-4)
    assert values.tolist() == pytest.approx([1e-4, 1e-4, 1e-4, 100.0001, 1e30, np.inf])
    assert slopes.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def test_what_is_not_a_number_is_passed_on():
    values, slopes = softened(np.array([np.nan], np.float32))
    assert np.isnan([values[0], slopes[0]]).all()
