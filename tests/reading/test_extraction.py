"""What only another process can survive: a library that never ends, breaks down, or takes all memory."""

import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading import annotated, extraction, read_features
from support.annotated import write_annotated
from support.tables import dense

MATRIX = np.array([[0.0, 1.0], [2.0, 0.0]])
LIBRARY = """
import __main__, ctypes, time

__main__._SECONDS = 1

class File:
    def __init__(self, *_):
        {work}
"""


@pytest.fixture
def path(tmp_path):
    return write_annotated(tmp_path / "cells.h5ad", sparse.csr_array(MATRIX), donor=["x", "y"])


def test_another_process_reads_the_same(path, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('the working folder is no place for modules')")
    monkeypatch.chdir(tmp_path)
    features = read_features("cells.h5ad", id_column="donor")
    assert (features.ids.tolist(), features.names) == (["x", "y"], ("g1", "g2"))
    assert np.array_equal(dense(features), MATRIX)
    with pytest.raises(DataFileError, match=r"cells\.h5ad: the observations have no column 'age'; they have donor"):
        read_features("cells.h5ad", id_column="age")


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        ("while True: pass", "damaged: the HDF5 library did not come to an end with it in 15 seconds of the processor"),
        ("time.sleep(600)", "damaged: the HDF5 library did not come to an end with it in 2.0 seconds"),
        ("ctypes.string_at(0)", "damaged: the HDF5 library broke down over it (Segmentation fault)"),
        ("bytearray(2 << 30)", "there is not enough memory for it"),
        ("raise SystemExit('no such library')", "the process that was to read it has failed (no such library)"),
    ],
)
def test_a_library_that_does_not_come_back_is_told(work, problem, path, tmp_path, monkeypatch):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "h5py.py").write_text(LIBRARY.format(work=work))
    monkeypatch.syspath_prepend(tmp_path / "library")
    if "sleep" in work:
        monkeypatch.setattr(annotated, "seconds_for", lambda _: 0.25)
    with pytest.raises(DataFileError) as refusal:
        read_features(path)
    assert (refusal.value.path, refusal.value.problem) == (path, problem)


def test_larger_files_may_take_longer(path):
    assert extraction.seconds_for(path) == 15
    with path.open("ab") as stream:
        stream.truncate(100 << 20)
    assert extraction.seconds_for(path) == 115
