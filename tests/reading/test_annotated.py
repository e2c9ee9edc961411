import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading import read_features
from support.tables import dense

MATRIX = np.array([[0.0, 1.0], [2.0, 0.0]])


@pytest.fixture
def annotated(tmp_path, monkeypatch):
    """A file that a stand-in for the package reads as what it is given: the package itself is optional."""
    path = tmp_path / "cells.h5ad"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")

    def holds(X, obs_names=("c1", "c2"), var_names=("g1", "g2")):
        obs = pd.DataFrame({"donor": [7, 8]}, index=list(obs_names))
        data = SimpleNamespace(X=X, obs=obs, obs_names=obs.index, var_names=pd.Index(var_names))
        monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda _: data))
        return path

    return holds


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_matrix, sparse.csr_array])
def test_observations_are_rows_and_variables_columns(make, annotated):
    features = read_features(annotated(make(MATRIX)))
    assert (features.ids.tolist(), features.names) == (["c1", "c2"], ("g1", "g2"))
    assert np.array_equal(dense(features), MATRIX)
    assert features.matrix.dtype == np.float32


def test_ids_may_be_a_column_of_the_observations(annotated):
    path = annotated(MATRIX)
    assert read_features(path, id_column="donor").ids.tolist() == [7, 8]
    with pytest.raises(DataFileError, match="the observations have no column 'age'; they have donor"):
        read_features(path, id_column="age")


def test_names_that_are_not_distinct_are_refused(annotated):
    with pytest.raises(DataFileError, match="the names of variables are not distinct: 'g' is there twice"):
        read_features(annotated(MATRIX, var_names=("g", "g")))
    with pytest.raises(DataFileError, match="it has no matrix X"):
        read_features(annotated(None))


def test_how_to_install_what_is_missing(annotated, monkeypatch):
    path = annotated(MATRIX)
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(DataFileError, match=r"reading it needs the package anndata: pip install 'corrvae\[anndata\]'"):
        read_features(path)
