import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.nn import DenseRows, FeatureTable, SparseRows
from support.rows import matrices
from support.shards import counts, sharded
from support.unchecked import unchecked


@given(matrices(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 2**16))
def test_batches_hold_the_rows_asked_for(matrix, limit, seed):
    picked = np.random.default_rng(seed).integers(0, matrix.shape[0], 4)
    expected = matrix.toarray().astype(np.float32)[picked]
    for X in (matrix, matrix.toarray(), sparse.coo_matrix(matrix), sparse.csc_array(matrix)):
        table = FeatureTable(X, density_limit=limit)
        batch = table.rows(picked)
        assert isinstance(batch, SparseRows if table.sparse_batches else DenseRows)
        np.testing.assert_array_equal(batch.dense().numpy(), expected)
        assert batch.dense().dtype == torch.float32


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_shards_stay_on_disk_and_give_the_same_batches(tmp_path, limit):
    matrix = sharded(tmp_path, counts(), 25)
    picked, chosen = np.array([3, 59, 3, 0]), np.array([50, 1, 30])
    for rows, indices in ((None, picked), (chosen, np.array([2, 0]))):
        found, expected = (FeatureTable(X, density_limit=limit, rows=rows) for X in (matrix, counts()))
        assert found._matrix is matrix
        assert (found.shape, found.sparse_batches) == (expected.shape, expected.sparse_batches)
        batch, other = found.rows(indices), expected.rows(indices)
        assert torch.equal(batch.dense(), other.dense())
        if isinstance(batch, SparseRows):
            assert torch.equal(batch.pattern.columns, other.pattern.columns)


@given(matrices(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 2**16))
def test_a_table_can_consist_of_some_rows(matrix, limit, seed):
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, matrix.shape[0], 3)
    picked = generator.integers(0, 3, 5)
    for X in (matrix, matrix.toarray()):
        table = FeatureTable(X, density_limit=limit, rows=chosen)
        assert table.shape == (3, matrix.shape[1])
        expected = matrix.toarray().astype(np.float32)[chosen[picked]]
        np.testing.assert_array_equal(table.rows(picked).dense().numpy(), expected)


def test_density_decides():
    thin, full = np.eye(50), np.ones((50, 4))
    assert FeatureTable(thin).sparse_batches
    assert FeatureTable(sparse.csr_array(thin)).sparse_batches
    assert not FeatureTable(full).sparse_batches
    assert not FeatureTable(sparse.csr_array(full)).sparse_batches


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_memory_maps_stay_on_disk(tmp_path, density):
    X = (np.random.default_rng(0).random((40, 30)) < density).astype(np.float64)
    stored = np.memmap(tmp_path / "x.bin", np.float64, "w+", shape=X.shape)
    stored[:] = X
    table = FeatureTable(stored)
    assert isinstance(table._matrix, np.memmap)
    np.testing.assert_array_equal(table.rows(np.array([3, 1])).dense().numpy(), X[[3, 1]].astype(np.float32))
    part = FeatureTable(stored, rows=np.array([5, 7]))
    assert isinstance(part._matrix, np.memmap)
    np.testing.assert_array_equal(part.rows(np.array([1])).dense().numpy(), X[[7]].astype(np.float32))


@pytest.mark.parametrize("limit", [0.0, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_missing_entries_are_masked(form, limit):
    X = np.array([[1.0, np.nan, 0.0], [0.0, 0.0, 2.0]])
    batch = FeatureTable(form(X), missing=True, density_limit=limit).rows(np.array([0, 1]))
    np.testing.assert_array_equal(batch.dense().numpy(), np.nan_to_num(X))
    assert batch.observed is not None
    assert int((~batch.observed).sum()) == 1


def test_the_callers_matrix_is_left_alone():
    X = sparse.csr_array((np.ones(3), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 30))
    batch = FeatureTable(X).rows(np.array([0]))
    assert batch.dense()[0, :2].tolist() == [1.0, 2.0]
    assert X.indices.tolist() == [1, 0, 1]
    dense = np.eye(3)
    FeatureTable(dense, density_limit=0.0).rows(np.array([0])).dense()[:] = 7.0
    np.testing.assert_array_equal(dense, np.eye(3))


def test_other_inputs_are_refused():
    with unchecked(), pytest.raises(TypeError, match="got list"):
        FeatureTable([[1.0]])
    with pytest.raises(ValueError, match="two dimensions"):
        FeatureTable(np.zeros(3))
    assert FeatureTable(np.zeros((0, 4))).shape == (0, 4)
