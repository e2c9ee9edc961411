"""What an HDF5 file says of itself is not believed: names of other files, sizes, kinds."""

import h5py
import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading import annotated, read_features
from corrvae.reading.hierarchy import Hierarchy
from support.annotated import extract_here, write_annotated

MATRIX = np.array([[0.0, 1.0], [2.0, 0.0]])
MANY = 10**12


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setattr(annotated, "_extract_apart", extract_here)


@pytest.fixture
def path(tmp_path):
    write_annotated(tmp_path / "secret.h5ad", MATRIX)
    return write_annotated(tmp_path / "cells.h5ad", MATRIX)


def refused(path, change, problem):
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(DataFileError, match=problem) as refusal:
        read_features(path)
    assert refusal.value.path == path


def replace(file, name, **how):
    del file[name]
    file.create_dataset(name, **how)


@pytest.mark.parametrize("name", ["X", "obs", "var/_index"])
@pytest.mark.parametrize("link", [lambda name: h5py.ExternalLink("secret.h5ad", name), h5py.SoftLink])
def test_links_are_not_followed(name, link, path):
    def change(file):
        file.move(name, "elsewhere")
        file[name] = link(name if link is not h5py.SoftLink else "/elsewhere")

    refused(path, change, f"{name} is a link; links are not followed")


def test_tables_in_other_files_are_not_read(path, tmp_path):
    (tmp_path / "numbers").write_bytes(np.ones((2, 2)).tobytes())
    outside = [(str(tmp_path / "numbers"), 0, h5py.h5f.UNLIMITED)]
    refused(path, lambda f: replace(f, "X", shape=(2, 2), dtype="f8", external=outside), "X lies in other files")

    def virtual(file):
        layout = h5py.VirtualLayout((2, 2), "f8")
        layout[:] = h5py.VirtualSource("secret.h5ad", "X", (2, 2))
        del file["X"]
        file.create_virtual_dataset("X", layout)

    refused(path, virtual, "X lies in other files")


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"shape": (MANY, 2), "dtype": "f4", "chunks": (1, 2)}, "X claims 8,000,000,000,000 bytes"),
        ({"shape": (MANY, 2), "dtype": "f4"}, "X claims"),
        ({"shape": (2, 2), "maxshape": (None, None), "chunks": (1 << 14, 1 << 14), "dtype": "f4"}, "X claims"),
        ({"shape": (2, 2), "dtype": np.dtype([("a", "f8"), ("b", "S100")])}, "numbers are expected"),
        ({"data": np.array([b"cos\nsystem\n(S'false'\ntR."], dtype="V24")}, "numbers are expected"),
        ({"data": h5py.Empty("f4")}, "X is missing, or is no table"),
    ],
)
def test_a_table_that_claims_too_much_is_not_read(how, problem, path):
    refused(path, lambda file: replace(file, "X", **how), problem)


def test_claims_in_the_parts_of_a_sparse_matrix_are_checked_too(path):
    write_annotated(path, sparse.csr_array(MATRIX))
    refused(path, lambda f: replace(f, "X/indptr", shape=(MANY,), dtype="i8", chunks=(10,)), "X/indptr claims")
    refused(
        path, lambda f: f["X"].attrs.create("shape", (MANY, 2)), r"X is of shape \(1000000000000, 2\), but there are"
    )
    refused(
        path, lambda f: f["X"].attrs.create("shape", np.ones(1000, int)), "'shape' is of an unexpected kind or size"
    )
    refused(path, lambda f: f["X"].attrs.create("encoding-type", 7), "X is of the kind")


def test_one_string_in_many_rows_is_counted_in_each(path):
    """Rows hold the place of a string: a file of a megabyte can name one of half a megabyte in 20,000 rows."""
    with h5py.File(path, "a") as file:
        file.create_dataset("long", data=["x" * 1000] * 100, dtype=h5py.string_dtype())
        parts = Hierarchy(path, file)
        assert len(parts.strings(file["long"], "long")) == 100
        parts._most = 80_000
        with pytest.raises(DataFileError, match="long takes more than 80,000 bytes, too many for its size"):
            parts.strings(file["long"], "long")


def test_more_strings_than_the_file_has_room_for_are_not_read(path):
    how = {"shape": (10**6,), "dtype": h5py.string_dtype()}
    refused(path, lambda f: replace(f, "obs/_index", **how), "observations claims 1,000,000 strings, too many")


def test_what_would_need_a_plug_in_is_refused(path):
    def packed(file):
        del file["X"]
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((2, 2))
        plan.set_filter(32000 + 15, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((2, 2)), plan)

    refused(path, packed, "X is packed in a way that is not one of gzip")


def test_parts_are_found_by_name(path):
    with h5py.File(path) as file:
        parts = Hierarchy(path, file)
        assert parts.child(file, "none") is None
        assert parts.child(file["X"], "x") is None
        assert parts.names(file["obs"]) == ["_index"]
        assert parts.strings(file["obs/_index"], "ids") == ["c1", "c2"]
        assert parts.attribute(file["obs"], "none", "_index") == "_index"
        assert parts.attribute(file["obs"], "none") is None
