import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.correlated.kernels import exact


def random_pairs(seed, n_pairs):
    generator = np.random.default_rng(seed)
    return generator, *generator.integers(0, 5, (2, n_pairs)).astype(np.int32)


@given(seed=st.integers(0, 10**6), n_pairs=st.integers(0, 11), width=st.integers(1, 9), dim=st.integers(1, 7))
def test_perceptron(seed, n_pairs, width, dim):
    generator, rows, columns = random_pairs(seed, n_pairs)
    halves_i, halves_j = generator.normal(size=(2, 5, 2, width)).astype(np.float32)
    weight, bias = generator.normal(size=(width, dim)).astype(np.float32), generator.normal(size=dim)
    a = np.empty((n_pairs, dim))
    exact.perceptron(halves_i, halves_j, rows, columns, weight, bias, a)
    wide_i, wide_j = halves_i.astype(float), halves_j.astype(float)
    hidden = np.maximum(wide_i[rows, 0] + wide_j[columns, 1], 0) + np.maximum(wide_j[columns, 0] + wide_i[rows, 1], 0)
    np.testing.assert_allclose(a, hidden @ weight.astype(float) + bias, rtol=1e-12, atol=1e-12)
    # alone, and the other way round, to the bit
    for n in range(n_pairs):
        one = np.empty((1, dim))
        exact.perceptron(halves_j, halves_i, columns[[n]], rows[[n]], weight, bias, one)
        np.testing.assert_array_equal(one[0], a[n])


@given(seed=st.integers(0, 10**6), rank=st.integers(1, 5), dim=st.integers(1, 7))
def test_bilinear(seed, rank, dim):
    generator, rows, columns = random_pairs(seed, 6)
    entries_i, entries_j = generator.normal(size=(2, 5, 2 * rank, dim)).astype(np.float32)
    constant, a, turned = generator.normal(size=dim), np.empty((6, dim)), np.empty((6, dim))
    exact.bilinear(entries_i, entries_j, rows, columns, constant, a)
    products = entries_i[rows].astype(float) * entries_j[columns].astype(float)
    wanted = products[:, :rank].sum(1) - products[:, rank:].sum(1) + constant
    np.testing.assert_allclose(a, wanted, rtol=1e-12, atol=1e-12)
    exact.bilinear(entries_j, entries_i, columns, rows, constant, turned)
    np.testing.assert_array_equal(turned, a)


@given(seed=st.integers(0, 10**6), width=st.integers(1, 9), dim=st.integers(1, 7), size=st.sampled_from([0.1, 1e30]))
def test_metric(seed, width, dim, size):
    generator, rows, columns = random_pairs(seed, 6)
    image_i, image_j = (size * generator.normal(size=(2, 5, width))).astype(np.float32)
    start, slope, a = generator.normal(size=dim), generator.exponential(size=dim), np.empty((6, dim))
    exact.metric(image_i, image_j, rows, columns, start, slope, a)
    gaps = ((image_i[rows].astype(float) - image_j[columns].astype(float)) ** 2).sum(1)
    np.testing.assert_allclose(a, start - np.outer(gaps, slope), rtol=1e-12, atol=1e-12)
    # alone, and the other way round, to the bit
    for n in range(6):
        one = np.empty((1, dim))
        exact.metric(image_j, image_i, columns[[n]], rows[[n]], start, slope, one)
        np.testing.assert_array_equal(one[0], a[n])


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 7), size=st.sampled_from([0.3, 1.0, 20.0]))
def test_distances(seed, dim, size):
    generator, rows, columns = random_pairs(seed, 6)
    sides = generator.exponential(size=(4, 5, dim)).astype(np.float32)
    a, values = size * generator.normal(size=(6, dim)), np.empty(6)
    exact.distances(*sides, rows, columns, a, values)
    mean_i, stddev_i = (side[rows].astype(float) for side in sides[:2])
    mean_j, stddev_j = (side[columns].astype(float) for side in sides[2:])
    wanted = (mean_i - mean_j) ** 2 + stddev_i**2 + stddev_j**2 - 2 * np.tanh(a) * stddev_i * stddev_j
    np.testing.assert_allclose(values, wanted.sum(1), rtol=1e-11, atol=1e-13)
