import numpy as np
from hypothesis import given

from corrvae.nn.kernels import sums
from support.rows import matrices


@given(matrices())
def test_weighted_entries(matrix):
    dense = np.random.default_rng(0).normal(size=matrix.shape)
    values = np.empty(matrix.shape[0])
    sums.weighted_entries(dense, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64), matrix.data, values)
    np.testing.assert_allclose(values, (dense * matrix.toarray()).sum(1), atol=1e-12)


@given(matrices())
def test_counts_gradient(matrix):
    generator = np.random.default_rng(0)
    probabilities, gradient = generator.random(matrix.shape), generator.normal(size=matrix.shape[0])
    counts = matrix.toarray()
    expected = gradient[:, None] * (counts - counts.sum(1, keepdims=True) * probabilities)
    columns, offsets = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    sums.counts_gradient(probabilities, columns, offsets, matrix.data, gradient)
    np.testing.assert_allclose(probabilities, expected, atol=1e-12)


def test_gradients_are_added_not_overwritten():
    rows = np.array([[1.0], [3.0]])
    into = np.full_like(rows, 10.0)
    sums.quadratic_gradient(rows, np.array([[0, 1]]), np.array([1.0]), np.array([0.0]), np.array([1.0]), into)
    assert into.tolist() == [[6.0], [14.0]]


def test_kl_of_a_row():
    joint, noise = np.array([[2.0, 0.5]]), np.zeros((1, 1))
    z, kl, into = np.empty((1, 1)), np.empty(1), np.empty((1, 2))
    sums.draw_with_kl(joint, noise, z, kl)
    np.testing.assert_allclose(kl, 0.5 * (4 + 0.25 - 1) - np.log(0.5))
    sums.draw_with_kl_gradient(joint, noise, np.zeros((1, 1)), np.array([3.0]), into)
    np.testing.assert_allclose(into, [[6.0, 3 * (0.5 - 2)]])


def test_draws_leave_other_rows_without_gradient():
    joint, noise = np.array([[1.0, 2.0], [5.0, 6.0]]), np.array([[3.0]])
    z, kl, into = np.empty((1, 1)), np.empty(1), np.full((2, 2), 9.0)
    sums.draw_with_kl(joint, noise, z, kl)
    assert z.tolist() == [[7.0]]
    sums.draw_with_kl_gradient(joint, noise, np.array([[10.0]]), np.array([1.0]), into)
    np.testing.assert_allclose(into, [[10 + 1, 30 + 2 - 1 / 2], [0, 0]])


def test_symmetric_hidden():
    table = np.random.default_rng(0).normal(size=(8, 3))
    first, second, hidden = np.array([0, 3, 2]), np.array([1, 0, 2]), np.empty((3, 3))
    sums.symmetric_hidden(table, first, second, hidden)
    a, b = table[::2], table[1::2]
    expected = np.maximum(a[first] + b[second], 0) + np.maximum(a[second] + b[first], 0)
    np.testing.assert_allclose(hidden, expected)
