import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import sparse

from corrvae.nn import DenseRows
from corrvae.nn.rows import SparsePattern, Transposition
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
    found = []
    for rows in (sparse_rows(matrix), DenseRows(torch.from_numpy(matrix.toarray()))):
        parameters = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        value = rows.affine(*parameters)
        found.append([value, *torch.autograd.grad((value * outer).sum(), parameters)])
    exact = torch.from_numpy(matrix.toarray())
    torch.testing.assert_close(found[1][0], exact @ weight + bias)
    torch.testing.assert_close(found[1][1], exact.T @ outer)
    for ours, dense in zip(*found, strict=True):
        torch.testing.assert_close(ours, dense)


@given(matrices())
def test_row_operations_agree_with_the_dense_ones(matrix):
    rows, dense = sparse_rows(matrix), DenseRows(torch.from_numpy(matrix.toarray()))
    factors = torch.arange(1.0, 1.0 + matrix.shape[0], dtype=torch.float64)
    torch.testing.assert_close(rows.sums(), dense.sums())
    torch.testing.assert_close(rows.sums(torch.square), dense.sums(torch.square))
    torch.testing.assert_close(rows.scale(factors).dense(), dense.scale(factors).dense())
    torch.testing.assert_close(rows.map(torch.tanh).dense(), dense.map(torch.tanh).dense())
    for count in range(matrix.shape[0] + 1):
        torch.testing.assert_close(rows.head(count).dense(), dense.head(count).dense())
        assert rows.head(count).shape == dense.head(count).shape == (count, matrix.shape[1])


@given(matrices())
def test_take_picks_the_stored_places(matrix):
    rows = sparse_rows(matrix)
    other = torch.arange(float(np.prod(matrix.shape))).view(matrix.shape)
    coordinates = sparse.coo_array(matrix).coords
    torch.testing.assert_close(rows.take(other), other[coordinates])


@given(matrices())
def test_transposition_is_scipys(matrix):
    found, expected = Transposition.of(sparse_rows(matrix).pattern), sparse.csc_array(matrix)
    np.testing.assert_array_equal(found.rows.numpy(), expected.indices)
    np.testing.assert_array_equal(found.offsets.numpy(), expected.indptr)
    np.testing.assert_array_equal(matrix.data[found.order.numpy()], expected.data)


def test_missing_entries_become_zeros_that_were_not_observed():
    matrix = np.array([[1.0, np.nan], [0.0, 2.0]])
    dense = DenseRows(torch.from_numpy(matrix)).mask_missing()
    stored = sparse_rows(sparse.csr_array(matrix)).mask_missing()
    assert dense.dense().tolist() == stored.dense().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert dense.observed.tolist() == [[True, False], [True, True]]
    assert stored.observed.tolist() == [True, False, True]
    assert dense.head(1).observed.tolist() == [[True, False]]
    assert stored.head(1).observed.tolist() == [True, False]


@pytest.mark.parametrize("target", [torch.float32, torch.device("cpu")])
def test_to_keeps_entries_and_mask(target):
    matrix = sparse.csr_array(np.array([[1.0, np.nan], [0.0, 2.0]]))
    for rows in (sparse_rows(matrix).mask_missing(), DenseRows(torch.from_numpy(matrix.toarray())).mask_missing()):
        moved = rows.to(target)
        assert moved.dense().tolist() == rows.dense().tolist()
        assert moved.observed.tolist() == rows.observed.tolist()


def test_pattern_knows_the_row_of_each_entry_also_after_empty_rows():
    pattern = SparsePattern.of(torch.tensor([1, 0, 2]), torch.tensor([0, 0, 2, 2, 3]), 3)
    assert pattern.row_of.tolist() == [1, 1, 3]
    assert pattern.flat.tolist() == [4, 3, 11]
