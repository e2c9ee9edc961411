"""AnnData files for tests."""

from pathlib import Path

import pytest


def write_annotated(path: Path, X, ids=("c1", "c2"), names=("g1", "g2"), **columns) -> Path:
    """Write X with names of rows and columns, and further columns of the table of rows."""
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    # Objects, because anndata 0.12 cannot write the strings of pandas 3.
    index, variables = (pandas.Index(list(listed), dtype=object) for listed in (ids, names))
    obs = pandas.DataFrame(index=index)
    for name, values in columns.items():
        obs[name] = pandas.Series(values, index, object if isinstance(values[0], str) else None)
    anndata.AnnData(X, obs=obs, var=pandas.DataFrame(index=variables)).write_h5ad(path)
    return path
