import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.nn import DenseRows, FeatureTable, SparseRows, rows
from corrvae.nn.rows import is_mapped
from support.rows import matrices

LIMITS = st.sampled_from([0.0, 0.3, 1.0])


@pytest.fixture
def limit(request, monkeypatch):
    monkeypatch.setattr(rows, "DENSITY_LIMIT", request.param)
    return request.param


def with_limit(limit, make):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "DENSITY_LIMIT", limit)
        return make()


def on_disk(folder, matrix):
    """Return a CSR matrix over three memory-mapped arrays."""
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
        parts.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return sparse.csr_array(tuple(parts), shape=matrix.shape)


@given(matrices(), LIMITS, st.integers(0, 2**16))
def test_batches_hold_the_rows_asked_for(matrix, limit, seed):
    picked = np.random.default_rng(seed).integers(0, matrix.shape[0], 4)
    expected = matrix.toarray().astype(np.float32)[picked]
    for X in (matrix, matrix.toarray(), sparse.coo_matrix(matrix), sparse.csc_array(matrix)):
        table = with_limit(limit, lambda X=X: FeatureTable(X))
        batch = table.rows(picked)
        assert isinstance(batch, SparseRows if table.sparse_batches else DenseRows)
        np.testing.assert_array_equal(batch.dense().numpy(), expected)
        assert batch.dense().dtype == torch.float32


@given(matrices(), LIMITS, st.integers(0, 2**16))
def test_a_table_can_consist_of_some_rows(matrix, limit, seed):
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, matrix.shape[0], 3)
    picked = generator.integers(0, 3, 5)
    for X in (matrix, matrix.toarray()):
        table = with_limit(limit, lambda X=X: FeatureTable(X, rows=chosen))
        assert table.shape == (3, matrix.shape[1])
        np.testing.assert_array_equal(table.numbers(picked), chosen[picked])
        expected = matrix.toarray().astype(np.float32)[chosen[picked]]
        np.testing.assert_array_equal(table.rows(picked).dense().numpy(), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, bool, np.float64])
def test_numbers_of_any_type_become_single_precision(dtype):
    X = np.eye(20).astype(dtype)
    for made in (X, sparse.csr_array(X), np.ones((3, 2), dtype)):
        assert FeatureTable(made).rows(np.array([1])).values.dtype == torch.float32


def test_density_decides():
    thin, full = np.eye(50), np.ones((50, 4))
    assert FeatureTable(thin).sparse_batches
    assert FeatureTable(sparse.csr_array(thin)).sparse_batches
    assert not FeatureTable(full).sparse_batches
    assert not FeatureTable(sparse.csr_array(full)).sparse_batches


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_dense_memory_maps_stay_on_disk(tmp_path, density):
    X = (np.random.default_rng(0).random((40, 30)) < density).astype(np.float64)
    stored = np.memmap(tmp_path / "x.bin", np.float64, "w+", shape=X.shape)
    stored[:] = X
    for table, rows_of in (
        (FeatureTable(stored), np.arange(40)),
        (FeatureTable(stored, rows=np.array([5, 7])), [5, 7]),
    ):
        assert table._matrix is stored
        found = table.rows(np.array([1, 0])).dense().numpy()
        np.testing.assert_array_equal(found, X[rows_of][[1, 0]].astype(np.float32))


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_sparse_memory_maps_stay_on_disk(tmp_path, density):
    X = sparse.random_array((40, 30), density=density, format="csr", rng=np.random.default_rng(0))
    table = FeatureTable(on_disk(tmp_path, X), rows=np.array([3, 39, 0]))
    assert all(is_mapped(getattr(table._matrix, name)) for name in ("data", "indices", "indptr"))
    found = table.rows(np.array([2, 1, 1])).dense().numpy()
    np.testing.assert_array_equal(found, X.toarray()[[0, 39, 39]].astype(np.float32))


def test_only_the_rows_of_a_batch_are_read_from_disk(tmp_path, monkeypatch):
    X = sparse.random_array((200, 30), density=0.1, format="csr", rng=np.random.default_rng(0))
    mapped = on_disk(tmp_path, X)
    looked_at = []
    # SciPy reads all indices to find out whether a matrix is canonical
    known = sparse.csr_array.has_canonical_format
    monkeypatch.setattr(
        sparse.csr_array,
        "has_canonical_format",
        property(lambda self: looked_at.append(self.shape[0]) or known.fget(self), known.fset),
    )
    FeatureTable(mapped).rows(np.array([1, 2, 3]))
    assert max(looked_at) <= 3


def test_repeated_entries_are_summed_and_the_callers_matrix_is_left_alone(tmp_path):
    X = sparse.csr_array((np.ones(5), np.array([1, 0, 1, 2, 2]), np.array([0, 3, 5])), shape=(2, 30))
    for made in (X, on_disk(tmp_path, X)):
        batch = FeatureTable(made).rows(np.array([0, 1]))
        assert batch.dense()[:, :3].tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
        assert batch.pattern.columns.tolist() == [0, 1, 2]
        assert made.indices.tolist() == [1, 0, 1, 2, 2]


@pytest.mark.parametrize("limit", [0.0, 1.0], indirect=True)
def test_batches_are_copies(limit):
    dense = np.eye(3)
    for X in (dense, sparse.csr_array(dense)):
        FeatureTable(X).rows(np.array([0])).values[:] = 7.0
        np.testing.assert_array_equal(FeatureTable(X).rows(np.arange(3)).dense().numpy(), np.eye(3))
    np.testing.assert_array_equal(dense, np.eye(3))


@pytest.mark.parametrize("limit", [0.0, 1.0], indirect=True)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_missing_entries_are_masked(form, limit):
    X = np.array([[1.0, np.nan, 0.0], [0.0, 0.0, 2.0]])
    batch = FeatureTable(form(X), missing=True).rows(np.array([0, 1]))
    np.testing.assert_array_equal(batch.dense().numpy(), np.nan_to_num(X))
    assert batch.observed is not None
    assert int((~batch.observed).sum()) == 1


def test_shapes():
    with pytest.raises(ValueError, match=r"two dimensions \(rows, features\), got 1"):
        FeatureTable(np.zeros(3))
    assert FeatureTable(np.zeros((0, 4))).shape == (0, 4)
    assert FeatureTable(np.zeros((3, 4))).rows(np.array([], dtype=np.int64)).shape == (0, 4)
