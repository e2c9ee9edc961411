import builtins

import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.io import read_features
from support.annotated import write_annotated
from support.tables import dense

X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.uint16, bool])
def test_npy(kind, tmp_path):
    np.save(tmp_path / "x.npy", X.astype(kind))
    features = read_features(tmp_path / "x.npy")
    assert (features.ids, features.names) == (None, None)
    assert np.array_equal(dense(features), X.astype(kind))
    assert features.matrix.dtype == np.float32
    assert isinstance(features.matrix, np.memmap) == (kind == np.float32)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_npz(kind, tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.coo_array(X).asformat(kind))
    features = read_features(tmp_path / "x.npz")
    assert isinstance(features.matrix, sparse.csr_array)
    assert np.array_equal(dense(features), X)


def test_npz_with_ids_and_names(tmp_path):
    np.savez(tmp_path / "x.npz", counts=X, ids=np.array([7, 9]), names=np.array(["a", "b", "c"]))
    features = read_features(tmp_path / "x.npz")
    assert (features.ids.tolist(), features.names) == ([7, 9], ["a", "b", "c"])


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"a": X, "b": X}, "one array of two dimensions is needed, the features; it holds a (2, 3), b (2, 3)"),
        ({"a": np.ones(3)}, "one array of two dimensions is needed, the features; it holds a (3,)"),
        ({"a": np.array([["x"]])}, "features are numbers in rows and columns; it holds <U1 of shape (1, 1)"),
        ({"a": np.ones((0, 3))}, "features are numbers in rows and columns; it holds float64 of shape (0, 3)"),
        ({"a": X, "ids": np.array([1, 1])}, "ids should be 2 distinct ones; it holds 2"),
        ({"a": X, "ids": np.array([1])}, "ids should be 2 distinct ones; it holds 1"),
        ({"a": X * 1e300}, "it holds numbers that are infinite or too large for 32 bits; rescale the features"),
    ],
)
def test_arrays_that_are_no_features(arrays, problem, tmp_path):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataFileError) as caught:
        read_features(tmp_path / "x.npz")
    assert caught.value.problem == problem


def test_no_pickle_is_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[object()]]), allow_pickle=True)
    np.savez(tmp_path / "x.npz", x=np.array([[{}]]))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataFileError, match="cannot be read as"):
            read_features(tmp_path / name)


def test_damaged_arrays(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", x=X)
    for name in ("x.npy", "x.npz"):
        whole = (tmp_path / name).read_bytes()
        for size in (len(whole) - 5, len(whole) // 2, 10):
            (tmp_path / name).write_bytes(whole[:size])
            with pytest.raises(DataFileError, match="cannot be read as"):
                read_features(tmp_path / name)
    with pytest.raises(DataFileError, match="an array has no column 'who' of ids"):
        read_features(tmp_path / "x.npy", id_column="who")


# AnnData


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_h5ad(make, tmp_path):
    path = write_annotated(tmp_path / "x.h5ad", make(X), names=["g1", "g2", "g3"], barcode=[11, 12])
    features = read_features(path)
    assert (features.ids.tolist(), features.names) == (["c1", "c2"], ["g1", "g2", "g3"])
    assert np.array_equal(dense(features), X)
    assert sparse.issparse(features.matrix) == (make is not np.asarray)
    assert features.matrix.dtype == np.float32
    assert read_features(path, id_column="barcode").ids.tolist() == [11, 12]
    assert read_features(path, names=["g3", "g1"]).matrix.shape == (2, 2)


def test_h5ad_that_cannot_be_read(tmp_path):
    path = write_annotated(tmp_path / "x.h5ad", X, names=["g1", "g2", "g3"], batch=["a", "a"])
    with pytest.raises(DataFileError, match="there is no 'who'"):
        read_features(path, id_column="who")
    with pytest.raises(DataFileError, match="ids should be 2 distinct ones"):
        read_features(path, id_column="batch")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataFileError, match="cannot be read as AnnData"):
        read_features(path)


def test_without_anndata_the_error_tells_what_to_install(tmp_path, monkeypatch):
    path = write_annotated(tmp_path / "x.h5ad", X, names=["g1", "g2", "g3"])
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "anndata":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataFileError, match=r"pip install corrvae\[anndata\]"):
        read_features(path)
