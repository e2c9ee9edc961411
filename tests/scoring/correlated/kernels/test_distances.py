import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.compiling import kernel
from corrvae.scoring.correlated.kernels import distances as kernels
from corrvae.scoring.correlated.kernels.distances import one_minus_tanh


@kernel()
def one_minus_tanh_of(x):
    values = np.empty_like(x)
    for k in range(len(x)):
        values[k] = one_minus_tanh(x[k])
    return values


def test_one_minus_tanh_is_accurate_even_where_it_is_small():
    x = np.concatenate([np.linspace(-60, 43, 400_001), np.logspace(-30, 1, 10_001)]).astype(np.float32)
    wanted = 2.0 / (1.0 + np.exp(2.0 * x.astype(np.float64)))
    np.testing.assert_allclose(one_minus_tanh_of(x), wanted, rtol=8 * 2.0**-24)
    assert (one_minus_tanh_of(x) <= 2).all()


def test_one_minus_tanh_lets_everything_through():
    found = one_minus_tanh_of(np.array([np.nan, np.inf, 1e30, -np.inf, 0.0], np.float32))
    np.testing.assert_allclose(found, [np.nan, 0, 0, 2, 1], atol=1e-37)


def test_errors():
    left, right = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])
    pairs, found = (np.array([1, 0], np.int32), np.zeros(2, np.int32)), np.empty(2)
    kernels.errors(np.array([10.0, 20.0], np.float32), *pairs, left, right, 0.1, found)
    np.testing.assert_allclose(found, [1 + 15 + 24, 2 + 5 + 12])


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 40))
def test_distances(seed, dim):
    generator = np.random.default_rng(seed)
    sides = generator.exponential(size=(4, 5, dim)).astype(np.float32)
    rows, columns = generator.integers(0, 5, (2, 9)).astype(np.int32)
    a = generator.normal(size=(9, dim)).astype(np.float32)
    values = np.empty(9, np.float32)
    kernels.distances(*sides, rows, columns, a, values)
    mean_i, stddev_i, mean_j, stddev_j = (
        side[ends].astype(float) for side, ends in zip(sides, (rows, rows, columns, columns), strict=True)
    )
    terms = (mean_i - mean_j) ** 2 + stddev_i**2 + stddev_j**2 - 2 * np.tanh(a) * stddev_i * stddev_j
    np.testing.assert_allclose(values, terms.sum(1), rtol=1e-5)


@pytest.mark.parametrize("tile", [1, 4, 100])
def test_a_perceptron_tile_by_tile(tile):
    generator = np.random.default_rng(0)
    mean_i, stddev_i, mean_j, stddev_j = generator.exponential(size=(4, 5, 3)).astype(np.float32)
    halves_i, halves_j = generator.normal(size=(2, 5, 2, 7)).astype(np.float32)
    weight, bias = generator.normal(size=(7, 3)).astype(np.float32), generator.normal(size=3).astype(np.float32)
    rows, columns = (part.reshape(-1).astype(np.int32) for part in np.mgrid[:5, :5])
    there = np.maximum(halves_i[rows, 0] + halves_j[columns, 1], 0)
    back = np.maximum(halves_j[columns, 0] + halves_i[rows, 1], 0)
    wanted, values, control = np.empty(25, np.float32), np.empty(25, np.float32), np.zeros(2, np.int64)
    a = (there + back) @ weight + bias
    kernels.distances(mean_i, stddev_i, mean_j, stddev_j, rows, columns, a, wanted)
    left, right = (mean_i, stddev_i, halves_i), (mean_j, stddev_j, halves_j)
    kernels.perceptron_distances(*left, *right, rows, columns, weight, bias, tile, values, control)
    np.testing.assert_allclose(values, wanted, rtol=1e-5)


@pytest.mark.parametrize("n_entries", [2, 4, 6, 8])
def test_bilinear(n_entries):
    generator = np.random.default_rng(0)
    mean_i, stddev_i, mean_j, stddev_j = generator.exponential(size=(4, 5, 3)).astype(np.float32)
    entries_i, entries_j = generator.normal(size=(2, 5, n_entries, 3)).astype(np.float32)
    constant = generator.normal(size=3).astype(np.float32)
    rows, columns = (part.reshape(-1).astype(np.int32) for part in np.mgrid[:5, :5])
    a = np.einsum("pek,pek->pk", entries_i[rows], entries_j[columns]) + constant
    wanted, values, control = np.empty(25, np.float32), np.empty(25, np.float32), np.zeros(2, np.int64)
    kernels.distances(mean_i, stddev_i, mean_j, stddev_j, rows, columns, a, wanted)
    left, right = (mean_i, stddev_i, entries_i), (mean_j, stddev_j, entries_j)
    kernels.bilinear_distances(*left, *right, rows, columns, constant, values, control)
    np.testing.assert_allclose(values, wanted, rtol=1e-5)


@pytest.mark.parametrize("dim", [1, 3, 37])
@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 1e25])
def test_metric(dim, size):
    generator = np.random.default_rng(0)
    mean_i, stddev_i, mean_j, stddev_j = generator.exponential(size=(4, 5, dim)).astype(np.float32)
    image_i, image_j = (size * generator.normal(size=(2, 5, dim))).astype(np.float32)
    start, slope = generator.normal(size=dim).astype(np.float32), generator.exponential(size=dim).astype(np.float32)
    rows, columns = (part.reshape(-1).astype(np.int32) for part in np.mgrid[:5, :5])
    gaps = ((image_i[rows].astype(float) - image_j[columns].astype(float)) ** 2).sum(1, keepdims=True)
    rho = np.tanh(start - slope * gaps)
    s_i, s_j, apart = stddev_i[rows].astype(float), stddev_j[columns].astype(float), mean_i[rows] - mean_j[columns]
    values, control = np.empty(25, np.float32), np.zeros(2, np.int64)
    left, right = (mean_i, stddev_i, image_i), (mean_j, stddev_j, image_j)
    kernels.metric_distances(*left, *right, rows, columns, start, slope, values, control)
    np.testing.assert_allclose(values, (apart**2 + s_i**2 + s_j**2 - 2 * rho * s_i * s_j).sum(1), rtol=1e-5)
