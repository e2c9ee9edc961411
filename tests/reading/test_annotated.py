import sys

import h5py
import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading import annotated, read_features
from support.annotated import extract_here, write_annotated
from support.tables import dense

MATRIX = np.array([[0.0, 1.0], [2.0, 0.0]])


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setattr(annotated, "_extract_apart", extract_here)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cells.h5ad"


@pytest.mark.parametrize("make", [np.asarray, np.int64, sparse.csc_array, sparse.csr_array])
def test_observations_are_rows_and_variables_columns(make, path):
    features = read_features(write_annotated(path, make(MATRIX)))
    assert (features.ids.tolist(), features.names) == (["c1", "c2"], ("g1", "g2"))
    assert np.array_equal(dense(features), MATRIX)
    assert features.matrix.dtype == np.float32
    assert sparse.issparse(features.matrix) == sparse.issparse(make(MATRIX))


def test_a_sparse_matrix_of_the_first_versions_is_read(path):
    with h5py.File(write_annotated(path, sparse.csr_array(MATRIX)), "a") as file:
        for name, value in {"h5sparse_format": "csr", "h5sparse_shape": (2, 2)}.items():
            file["X"].attrs[name] = value
        del file["X"].attrs["encoding-type"], file["X"].attrs["shape"]
    assert np.array_equal(dense(read_features(path)), MATRIX)


@pytest.mark.parametrize(
    ("donors", "ids"),
    [
        ([7, 8], [7, 8]),
        (np.array([b"x", b"y"]), ["x", "y"]),
        ({"kind": "categorical", "codes": np.array([1, 0], np.int8), "categories": ["a", "b"]}, ["b", "a"]),
        ({"kind": "nullable-string-array", "values": ["a", "b"], "mask": [False, False]}, ["a", "b"]),
    ],
)
def test_ids_may_be_a_column_of_the_observations(donors, ids, path):
    write_annotated(path, MATRIX, donor=donors)
    assert read_features(path, id_column="donor").ids.tolist() == ids
    with pytest.raises(DataFileError, match="the observations have no column 'age'; they have donor"):
        read_features(path, id_column="age")


@pytest.mark.parametrize(
    ("donors", "problem"),
    [
        ({"kind": "categorical", "codes": np.array([-1, 0]), "categories": ["a", "b"]}, "rows without a value"),
        ({"kind": "nullable-string-array", "values": ["a", "b"], "mask": [True, False]}, "rows without a value"),
        ({"kind": "awkward"}, "is of the kind 'awkward'; ids are strings or integers"),
        ([0.5, 1.5], "strings are expected"),
    ],
)
def test_ids_that_are_none_are_refused(donors, problem, path):
    write_annotated(path, MATRIX, donor=donors)
    with pytest.raises(DataFileError, match=problem):
        read_features(path, id_column="donor")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"names": ("g", "g")}, "the names of variables are not distinct: 'g' is there twice"),
        ({"X": None}, "it has no matrix X"),
        ({"ids": ("a", "b", "c")}, r"X is of shape \(2, 2\), but there are 3 observations and 2 variables"),
        ({"X": np.array([["a", "b"], ["c", "d"]], "S1")}, "X holds .*; numbers are expected"),
        ({"X": np.array([[np.inf, 0.0], [0.0, 0.0]])}, "infinite or too large"),
        ({"X": np.zeros((2, 2, 1))}, "two dimensions"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, problem, path):
    write_annotated(path, **{"X": MATRIX, **changes})
    with pytest.raises(DataFileError, match=problem):
        read_features(path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indices", [0, 7]),
        ("indptr", [0, 1]),
        ("indptr", [0, 9, 2]),
        ("indptr", [0, *[2**27] * (len(MATRIX) - 1), 0]),  # which SciPy follows, far outside
        ("indices", [0.5, 1.5]),
    ],
)
def test_a_sparse_matrix_whose_parts_contradict_each_other_is_refused(part, value, path):
    with h5py.File(write_annotated(path, sparse.csr_array(MATRIX)), "a") as file:
        del file["X"][part]
        file["X"].create_dataset(part, data=value)
    with pytest.raises(DataFileError, match="cannot be read as annotated data"):
        read_features(path)


def test_how_to_install_what_is_missing(path, monkeypatch):
    write_annotated(path, MATRIX)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DataFileError, match=r"reading it needs the package h5py: pip install 'corrvae\[anndata\]'"):
        read_features(path)
