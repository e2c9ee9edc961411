import zipfile

import numpy as np
import pytest
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.reading import read_features
from corrvae.reading.arrays import read_npy
from support.tables import dense

MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0]])


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_of_any_form(form, make, tmp_path):
    sparse.save_npz(tmp_path / "x.npz", make(MATRIX).asformat(form))
    features = read_features(tmp_path / "x.npz")
    assert isinstance(features.matrix, sparse.csr_array)
    assert features.matrix.dtype == np.float32
    assert (features.ids, features.names) == (None, None)
    assert np.array_equal(dense(features), MATRIX)


def test_an_array_of_float32_stays_on_the_disk(tmp_path):
    np.save(tmp_path / "x.npy", MATRIX.astype(np.float32))
    assert isinstance(read_npy(tmp_path / "x.npy").matrix, np.memmap)
    np.save(tmp_path / "x.npy", MATRIX.astype(np.int16))
    features = read_npy(tmp_path / "x.npy")
    assert (features.matrix.dtype, dense(features).tolist()) == (np.float32, MATRIX.astype(int).tolist())


def test_ids_and_names_beside_an_array(tmp_path):
    np.savez(tmp_path / "x.npz", anything=MATRIX, ids=np.array([4, 9]), names=np.array(["a", "b", "c"]))
    features = read_features(tmp_path / "x.npz")
    assert (features.ids.tolist(), features.names) == ([4, 9], ("a", "b", "c"))


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"a": MATRIX, "b": MATRIX}, "one array of two dimensions is expected, the features; it holds a (2, 3), b"),
        ({"a": MATRIX[0]}, "one array of two dimensions is expected"),
        ({"a": MATRIX.astype(str)}, "the array 'a' holds <U32; features are numbers"),
        ({"a": MATRIX[:0]}, "the array 'a' is empty: its shape is (0, 3)"),
        ({"a": MATRIX * 1e39}, "it holds numbers that are infinite or too large for 32 bits"),
        ({"a": MATRIX, "ids": np.array([1])}, "'ids' should be 2 strings or integers; it is int64 of shape (1,)"),
        ({"a": MATRIX, "ids": np.array([1, 1])}, "'ids' are not distinct"),
        (
            {"a": MATRIX.astype(object)},
            "cannot be read as arrays or as a sparse matrix (Object arrays cannot be loaded",
        ),
    ],
)
def test_what_cannot_be_features(arrays, problem, tmp_path):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataFileError) as caught:
        read_features(tmp_path / "x.npz")
    assert caught.value.problem.startswith(problem)


def test_places_outside_a_sparse_matrix_are_refused(tmp_path):
    parts = {"data": np.ones(1), "indices": np.array([7]), "indptr": np.array([0, 1, 1]), "shape": np.array([2, 3])}
    for form in (b"csr", b"csc"):
        np.savez(
            tmp_path / "x.npz",
            format=np.array(form),
            **{**parts, "indptr": np.array([0, 1, 1, 1][: 3 + (form == b"csc")])},
        )
        with pytest.raises(DataFileError, match="cannot be read as arrays or as a sparse matrix"):
            read_features(tmp_path / "x.npz")


def test_damaged_files_are_told(tmp_path):
    np.savez(tmp_path / "x.npz", a=MATRIX)
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:60])
    np.save(tmp_path / "x.npy", MATRIX)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-8])
    for name in ("x.npz", "x.npy"):
        with pytest.raises(DataFileError, match="cannot be read as"):
            read_features(tmp_path / name)


def header(shape, descr="<f8"):
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("shape", ["(1000000000000, 3)", "(100000000, 100)", "(4000000000000000000, 4)"])
def test_a_header_that_claims_more_than_there_is_takes_no_memory(tmp_path, shape):
    with pytest.raises(DataFileError, match=r"x\.npy claims [\d,]+ bytes of numbers, but has 176"):
        read_features(zipped(tmp_path / "a.npz", x=header(shape) + bytes(48)))
    (tmp_path / "a.npy").write_bytes(header(shape) + bytes(48))
    with pytest.raises(DataFileError, match="cannot be read as an array"):
        read_features(tmp_path / "a.npy")


def test_a_sparse_matrix_cannot_claim_rows_without_end(tmp_path):
    tall = sparse.coo_array(([1.0], ([0], [0])), shape=(10**12, 2))
    sparse.save_npz(tmp_path / "x.npz", tall)
    with pytest.raises(DataFileError, match="claims 1,000,000,000,000 rows, too many for its size"):
        read_features(tmp_path / "x.npz")


def test_a_sparse_matrix_cannot_claim_columns_without_end(tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.coo_array(([1.0], ([0], [0])), shape=(3, 10**12)))
    with pytest.raises(DataFileError, match="claims 1,000,000,000,000 columns, too many for its size"):
        read_features(tmp_path / "x.npz")


def test_many_small_claims_are_one_large_claim(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_BZIP2) as archive:
        for number in range(20):
            with archive.open(f"part{number}.npy", "w") as file:
                np.lib.format.write_array(file, np.zeros(2**21 - 100))
    with pytest.raises(DataFileError, match=r"its arrays claim 335,\d+,\d+ bytes in"):
        read_features(tmp_path / "x.npz")


def test_strange_members_are_refused(tmp_path):
    for content in (b"", b"text", header("(2, 2)", "|O"), header("(-1, 2)"), b"\x93NUMPY\x09\x00" + bytes(9)):
        with pytest.raises(DataFileError, match="cannot be read as arrays"):
            read_features(zipped(tmp_path / "a.npz", x=content + bytes(64)))


@pytest.mark.parametrize("shape", ["(-1, 2)", "(-2, -3)"])
def test_a_shape_that_cannot_be_is_refused(tmp_path, shape):
    (tmp_path / "a.npy").write_bytes(header(shape) + bytes(48))
    with pytest.raises(DataFileError, match="cannot be read as an array"):
        read_features(tmp_path / "a.npy")
    (tmp_path / "a.npy").write_bytes(header("(2, 3").replace(b"}", b" ") + bytes(48))
    with pytest.raises(DataFileError, match="its header cannot be read"):
        read_features(tmp_path / "a.npy")


def test_the_numbers_of_a_sparse_matrix_are_read_once(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    sparse.save_npz(path, sparse.csr_array(np.eye(3, dtype=np.float32)))
    opened = []
    get = np.lib.npyio.NpzFile.__getitem__
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda self, name: opened.append(name) or get(self, name))
    assert dense(read_features(path)).tolist() == np.eye(3).tolist()
    assert (opened.count("data"), opened.count("indices")) == (1, 1)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_arrays_packed_by_methods_without_a_limit_are_refused(tmp_path, method):
    np.save(tmp_path / "x.npy", MATRIX)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
    with pytest.raises(DataFileError, match=f"x.npz: member 'x.npy' is packed by the method {method}"):
        read_features(tmp_path / "x.npz")


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.longdouble])
@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_infinite_numbers_of_any_width_are_refused(tmp_path, kind, name):
    (np.save if name == "x.npy" else np.savez)(tmp_path / name, np.array([[1.0, -np.inf]], kind))
    with pytest.raises(DataFileError, match="infinite or too large"):
        read_features(tmp_path / name)


def test_the_largest_number_of_16_bits_is_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[65504.0, np.nan]], np.float16))
    assert np.array_equal(dense(read_features(tmp_path / "x.npy")), [[65504.0, np.nan]], equal_nan=True)


def test_diagonals_cannot_keep_scipy_busy(tmp_path):
    parts = {
        "format": b"dia",
        "shape": np.array([10**7, 10**7]),
        "data": np.ones((2000, 1)),
        "offsets": np.arange(2000),
    }
    np.savez_compressed(tmp_path / "x.npz", **parts)
    with pytest.raises(DataFileError, match="claims 2,000 diagonals of 10,000,000 rows, too many for its size"):
        read_features(tmp_path / "x.npz")
