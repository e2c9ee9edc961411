import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import sparse

from corrvae.nn import DenseRows, SparsePattern
from support.rows import matrices, sparse_rows


@given(matrices())
def test_dense_restores_the_matrix(matrix):
    np.testing.assert_array_equal(sparse_rows(matrix).dense().numpy(), matrix.toarray())


@given(matrices())
def test_affine_and_its_gradients_equal_the_dense_product(matrix):
    n_rows, n_columns = matrix.shape
    torch.manual_seed(0)
    weight = torch.randn(n_columns, 3, dtype=torch.float64)
    bias, outer = torch.randn(3, dtype=torch.float64), torch.randn(n_rows, 3, dtype=torch.float64)
    exact = torch.from_numpy(matrix.toarray())
    for rows in (sparse_rows(matrix), DenseRows(exact)):
        parameters = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        value = rows.affine(*parameters)
        of_weight, of_bias = torch.autograd.grad((value * outer).sum(), parameters)
        torch.testing.assert_close(value, exact @ weight + bias)
        torch.testing.assert_close(of_weight, exact.T @ outer)
        torch.testing.assert_close(of_bias, outer.sum(0))


def test_the_sparse_product_passes_gradcheck():
    rows = sparse_rows(sparse.csr_array([[0.0, 2.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.5, 0.0, 0.0]]))
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(rows.affine, (weight, bias))
    assert torch.autograd.gradcheck(lambda w, b: rows.affine(w.t(), b), (weight.detach().t().requires_grad_(), bias))


@given(matrices())
def test_row_operations_agree_with_the_dense_ones(matrix):
    rows, dense = sparse_rows(matrix), DenseRows(torch.from_numpy(matrix.toarray()))
    factors = torch.arange(1.0, 1.0 + matrix.shape[0], dtype=torch.float64)
    torch.testing.assert_close(rows.sums(), dense.sums())
    torch.testing.assert_close(rows.sums(torch.square), dense.sums(torch.square))
    torch.testing.assert_close(rows.scale(factors).dense(), dense.scale(factors).dense())
    torch.testing.assert_close(rows.map(torch.tanh).dense(), dense.map(torch.tanh).dense())
    n_rows = matrix.shape[0]
    for piece in (slice(start, stop) for start in range(n_rows + 1) for stop in range(start, n_rows + 1)):
        torch.testing.assert_close(rows[piece].dense(), dense[piece].dense())
        assert rows[piece].shape == dense[piece].shape == (piece.stop - piece.start, matrix.shape[1])


@given(matrices())
def test_take_picks_the_stored_places(matrix):
    other = torch.arange(float(np.prod(matrix.shape))).view(matrix.shape)
    torch.testing.assert_close(sparse_rows(matrix).take(other), other[sparse.coo_array(matrix).coords])


@given(matrices())
def test_sorting_by_column_is_stable_on_every_device(matrix):
    class Elsewhere(torch.Tensor):
        """A tensor that claims to be on another device."""

        is_cpu = False

    dense = matrix.toarray()
    expected_columns, expected_rows = np.nonzero(dense.T)
    pattern = sparse_rows(matrix).pattern
    moved = SparsePattern(pattern.columns.as_subclass(Elsewhere), pattern.offsets, pattern.n_columns)
    for order, rows, offsets in (pattern.by_column, moved.by_column):
        np.testing.assert_array_equal(rows.numpy(), expected_rows)
        np.testing.assert_array_equal(matrix.data[order.numpy()], dense.T[expected_columns, expected_rows])
        np.testing.assert_array_equal(np.diff(offsets.numpy()), np.count_nonzero(dense, axis=0))


def test_missing_entries_become_zeros_that_were_not_observed():
    matrix = np.array([[1.0, np.nan], [0.0, 2.0]])
    dense = DenseRows(torch.from_numpy(matrix)).mask_missing()
    stored = sparse_rows(sparse.csr_array(matrix)).mask_missing()
    assert dense.dense().tolist() == stored.dense().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert dense.observed.tolist() == [[True, False], [True, True]]
    assert stored.observed.tolist() == [True, False, True]
    assert dense[:1].observed.tolist() == [[True, False]]
    assert stored[:1].observed.tolist() == [True, False]
    assert stored[1:].observed.tolist() == [True]


@pytest.mark.parametrize("target", [torch.float32, torch.device("cpu")])
def test_to_keeps_entries_and_mask(target):
    matrix = sparse.csr_array(np.array([[1.0, np.nan], [0.0, 2.0]]))
    for rows in (sparse_rows(matrix).mask_missing(), DenseRows(torch.from_numpy(matrix.toarray())).mask_missing()):
        moved = rows.to(target)
        assert moved.dense().tolist() == rows.dense().tolist()
        assert moved.observed.tolist() == rows.observed.tolist()


def test_pattern_knows_the_row_of_each_entry_also_after_empty_rows():
    pattern = SparsePattern(torch.tensor([1, 0, 2]), torch.tensor([0, 0, 2, 2, 3]), 3)
    assert pattern.row_of.tolist() == [1, 1, 3]
    assert pattern.flat.tolist() == [4, 3, 11]
