import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from corrvae.nn.kernels import sums
from support.rows import matrices


@given(matrices(), st.sampled_from([1.0, 1000.0]))
def test_log_likelihood_of_counts(matrix, spread):
    # outputs that are far apart leave probabilities of 0, whose logarithms are wanted all the same
    outputs = spread * np.random.default_rng(0).normal(size=matrix.shape)
    values = np.empty(matrix.shape[0])
    entries = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64), matrix.data
    sums.log_likelihood_of_counts(outputs, softmax(outputs, axis=1), *entries, values)
    expected = (log_softmax(outputs, axis=1) * matrix.toarray()).sum(1)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


def test_digits_are_kept_where_all_outputs_are_large():
    outputs = np.random.default_rng(0).normal(size=(5, 40)).astype(np.float32) + np.float32(1e4)
    counts = np.ones((5, 40), np.float32)
    entries = np.tile(np.arange(40), 5), np.arange(6) * 40, counts.ravel()
    values = np.empty(5, np.float32)
    sums.log_likelihood_of_counts(outputs, softmax(outputs, axis=1).astype(np.float32), *entries, values)
    np.testing.assert_allclose(values, log_softmax(outputs.astype(np.float64), axis=1).sum(1), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("stddev", [1e-4, 1e-37, 1e18])
def test_divergences_of_very_small_and_very_large_deviations(kind, stddev):
    joint = np.concatenate([np.zeros((1, 101)), np.full((1, 101), stddev)], axis=1).astype(kind)
    z, kl, ones = np.empty((1, 101), kind), np.empty(1, kind), np.ones(202, kind)
    sums.draw_and_compare(joint, np.zeros_like(z), NOBODY, ones, ones, np.zeros((), kind), z, kl, np.empty(0, kind))
    exact = 101 * ((float(kind(stddev)) ** 2 - 1) / 2 - np.log(float(kind(stddev))))
    np.testing.assert_allclose(kl, kind(exact), rtol=1e-5)


def test_what_is_not_a_number_reaches_the_log_likelihood():
    for place in range(3):
        outputs = np.zeros((1, 3))
        outputs[0, place] = np.nan
        values = np.zeros(1)
        entries = np.array([1]), np.array([0, 1]), np.ones(1)
        sums.log_likelihood_of_counts(outputs, softmax(outputs, axis=1), *entries, values)
        assert np.isnan(values[0])


@given(matrices())
def test_counts_gradient(matrix):
    generator = np.random.default_rng(0)
    probabilities, gradient = generator.random(matrix.shape), generator.normal(size=matrix.shape[0])
    counts = matrix.toarray()
    expected = gradient[:, None] * (counts - counts.sum(1, keepdims=True) * probabilities)
    columns, offsets = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    into, totals = np.full(matrix.shape, np.nan), np.full(matrix.shape[1], np.nan)
    sums.counts_gradient(probabilities, columns, offsets, matrix.data, gradient, into, totals)
    np.testing.assert_allclose(into, expected, atol=1e-12)
    np.testing.assert_allclose(totals, expected.sum(0), atol=1e-12)


NOBODY, NOTHING = np.empty((0, 2), np.int64), np.empty(0)


def test_the_form_of_a_pair_and_its_gradient():
    joint, noise, pairs = np.array([[1.0, 2.0], [3.0, 5.0]]), np.empty((0, 1)), np.array([[0, 1], [0, 1]])
    apart, together = np.array([1.0, 0.0]), np.array([0.0, 10.0])
    values, into = np.empty(2), np.full((2, 2), 9.0)
    empty = np.empty((0, 1)), np.empty(0)
    sums.draw_and_compare(joint, noise, pairs, apart, together, np.array(0.5), *empty, values)
    assert values.tolist() == [4 + 490 + 0.5] * 2
    sums.draw_and_compare_gradient(joint, noise, pairs, apart, together, *empty, np.array([1.0, 2.0]), into)
    assert into.tolist() == [[-12.0, 420.0], [12.0, 420.0]]


def test_draws_their_divergences_and_gradients():
    joint, noise = np.array([[1.0, 2.0], [5.0, 6.0]]), np.array([[3.0]])
    z, kl, into = np.empty((1, 1)), np.empty(1), np.full((2, 2), 9.0)
    factors = np.ones(2), np.ones(2)
    sums.draw_and_compare(joint, noise, NOBODY, *factors, np.array(0.0), z, kl, NOTHING)
    assert z.tolist() == [[7.0]]
    np.testing.assert_allclose(kl, 0.5 * (1 + 4 - 1) - np.log(2.0))
    many = np.random.default_rng(0).uniform(1e-3, 3.0, (2, 12)).astype(np.float32)
    some, of_many = np.empty((2, 6), np.float32), np.empty(2, np.float32)
    eyes = np.ones(12, np.float32)
    sums.draw_and_compare(
        many, np.zeros_like(some), NOBODY, eyes, eyes, np.float32([0.0]).reshape(()), some, of_many, of_many[:0]
    )
    mean, stddev = many[:, :6].astype(np.float64), many[:, 6:].astype(np.float64)
    np.testing.assert_allclose(of_many, ((mean**2 + stddev**2 - 1) / 2 - np.log(stddev)).sum(1), rtol=1e-6)
    gradients = np.array([[10.0]]), np.array([3.0]), NOTHING
    sums.draw_and_compare_gradient(joint, noise, NOBODY, *factors, *gradients, into)
    np.testing.assert_allclose(into, [[10 + 3, 30 + 3 * (2 - 1 / 2)], [0, 0]])


def test_symmetric_hidden():
    table = np.random.default_rng(0).normal(size=(8, 3))
    first, second, hidden = np.array([0, 3, 2]), np.array([1, 0, 2]), np.empty((3, 3))
    sums.symmetric_hidden(table, first, second, hidden)
    a, b = table[::2], table[1::2]
    expected = np.maximum(a[first] + b[second], 0) + np.maximum(a[second] + b[first], 0)
    np.testing.assert_allclose(hidden, expected)


def test_gradients_through_relu_and_softplus_and_their_sums():
    generator = np.random.default_rng(0)
    gradient, rectified = generator.normal(size=(5, 7)), generator.normal(size=(5, 7)).clip(0)
    rectified[0, 0] = np.nan  # what is not a number was not cut off
    expected, totals = np.where(rectified <= 0, 0.0, gradient), np.empty(7)
    sums.rectify_gradient(gradient, rectified, totals)
    np.testing.assert_array_equal(gradient, expected)
    np.testing.assert_allclose(totals, expected.sum(0), rtol=1e-12)
    gradient, slopes, totals = generator.normal(size=(5, 6)), generator.random((5, 3)), np.empty(6)
    expected = gradient * np.concatenate([np.ones((5, 3)), slopes], axis=1)
    sums.soften_gradient(gradient, slopes, totals)
    np.testing.assert_array_equal(gradient, expected)
    np.testing.assert_allclose(totals, expected.sum(0), rtol=1e-12)
