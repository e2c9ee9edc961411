from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading import Features, cells
from corrvae.reading.cells import refuse_empty_cells, uneven_columns
from support.shards import sharded

HOLE = np.eye(6, 3, dtype=np.float32)
HOLE[4, 1] = np.nan


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_an_empty_cell_is_named(make, monkeypatch):
    monkeypatch.setattr(cells, "_CELLS", 6)
    with pytest.raises(DataFileError, match=r"x.csv: row 4 \(from 0\) has nothing in column 1 \(from 0\); fill it"):
        refuse_empty_cells(Path("x.csv"), Features(make(HOLE), None, None))
    ids = np.array(list("abcdef"), dtype=object)
    with pytest.raises(
        DataFileError, match=r"the row of e has nothing in column 'q'; fill it, or .*--empty-cells mask"
    ):
        refuse_empty_cells(Path("x.csv"), Features(make(HOLE), ids, ("p", "q", "r")))
    refuse_empty_cells(Path("x.csv"), Features(make(np.nan_to_num(HOLE)), None, None))


def test_columns_of_uneven_size_are_told():
    rng = np.random.default_rng(0)
    even = rng.normal(size=(50, 3)).astype(np.float32)
    assert uneven_columns(Features(even, None, None)) is None
    assert uneven_columns(Features(np.full((5, 2), 1e6, dtype=np.float32), None, None)) is None  # constant ones
    said = uneven_columns(Features(even * np.float32([1, 1, 1e4]), None, ("a", "b", "income")))
    assert said.startswith("column 'income' has a spread of ")
    assert uneven_columns(Features(even * np.float32([1e-4, 1, 1]), None, None)) is not None
    even[3, 2] = np.nan
    assert uneven_columns(Features(even, None, None)) is None


def test_an_empty_cell_in_shards_is_found(tmp_path):
    features = Features(sharded(tmp_path, sparse.csr_array(HOLE), 2), None, ("a", "b", "c"))
    with pytest.raises(DataFileError, match=r"row 4 \(from 0\) has nothing in column 'b'"):
        refuse_empty_cells(Path("x"), features)
    assert uneven_columns(features) is None
