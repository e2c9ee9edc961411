import errno

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.errors import DataFileError, FolderError
from corrvae.io import map_table, mapped, open_mapped, read_features, write_mapped


def is_mapped(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


MATRIX = sparse.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(0))


def test_round_trip_with_ids_and_names(tmp_path):
    ids, names = np.array([f"u{k}" for k in range(40)], dtype=object), [f"i{k}" for k in range(30)]
    write_mapped(tmp_path / "x", MATRIX, ids=ids, names=names)
    features = read_features(tmp_path / "x")
    assert np.array_equal(features.matrix.toarray(), MATRIX.toarray().astype(np.float32))
    assert (features.ids.tolist(), features.names) == (ids.tolist(), names)
    write_mapped(tmp_path / "bare", MATRIX)
    assert read_features(tmp_path / "bare").ids is None
    assert read_features(tmp_path / "bare", names=names).names == names
    write_mapped(tmp_path / "numbers", MATRIX, ids=np.arange(40) * 3)
    assert read_features(tmp_path / "numbers").ids.tolist() == list(range(0, 120, 3))
    with pytest.raises(DataFileError, match="it was not written with the model's columns"):
        read_features(tmp_path / "x", names=names[::-1])
    with pytest.raises(ValueError, match="there are 3 ids for a matrix of shape"):
        write_mapped(tmp_path / "y", MATRIX, ids=np.arange(3))


def test_it_stays_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_ENTRIES", 7)  # written in pieces
    write_mapped(tmp_path / "x", MATRIX)
    matrix = open_mapped(tmp_path / "x")
    picked = matrix[[3, 1, 7]]
    for part in (matrix.data, matrix.indices, matrix.indptr):
        assert is_mapped(part)
        assert not part.flags.writeable
    assert not is_mapped(picked.data)
    assert np.array_equal(picked.toarray(), MATRIX.astype(np.float32)[[3, 1, 7]].toarray())
    assert all(is_mapped(part) for part in (matrix.data, matrix.indices, matrix.indptr))
    # A mapped matrix can be written again.
    write_mapped(tmp_path / "again", matrix)
    assert np.array_equal(open_mapped(tmp_path / "again").toarray(), matrix.toarray())


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_arrays_that_a_user_saved(kind, tmp_path):
    for part in ("data", "indices", "indptr"):
        array = getattr(MATRIX, part)
        np.save(tmp_path / f"{part}.npy", array if part == "data" else array.astype(kind))
    matrix = open_mapped(tmp_path)
    assert matrix.indices.dtype == matrix.indptr.dtype == kind
    assert is_mapped(matrix.indices)
    assert np.array_equal(matrix.toarray(), MATRIX.toarray())
    np.save(tmp_path / "shape.npy", np.array([40, 99]))
    assert open_mapped(tmp_path).shape == (40, 99)


def test_arrays_that_do_not_fit(tmp_path):
    write_mapped(tmp_path / "x", MATRIX)
    folder = tmp_path / "x"
    indices = np.load(folder / "indices.npy")
    np.save(folder / "indices.npy", indices.astype(np.int64))
    with pytest.raises(FolderError, match="indices are int64 and indptr int32; both should be"):
        open_mapped(folder)
    np.save(folder / "indices.npy", indices[:-1])
    with pytest.raises(FolderError, match="damaged: its arrays do not fit together"):
        open_mapped(folder)
    np.save(folder / "indices.npy", indices)
    np.save(folder / "shape.npy", np.array([41, 30]))
    with pytest.raises(DataFileError, match="damaged: its arrays do not fit together"):
        read_features(folder)
    (folder / "data.npy").write_bytes(b"nothing")
    with pytest.raises(FolderError, match=r"data\.npy: damaged"):
        open_mapped(folder)


def test_an_empty_matrix(tmp_path):
    write_mapped(tmp_path / "x", sparse.csr_array((3, 5)))
    assert open_mapped(tmp_path / "x").shape == (3, 5)
    assert open_mapped(tmp_path / "x")[[1]].nnz == 0


def test_nothing_is_overwritten_and_nothing_half_written_stays(tmp_path, monkeypatch):
    write_mapped(tmp_path / "x", MATRIX)
    with pytest.raises(FolderError, match="this exists already"):
        write_mapped(tmp_path / "x", MATRIX)
    (tmp_path / "empty").mkdir()
    write_mapped(tmp_path / "empty", MATRIX)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FolderError, match="the disk is full"):
        write_mapped(tmp_path / "y", MATRIX)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["empty", "x"]


ENTRIES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-2, 3)), min_size=1, max_size=60)


@given(rows=ENTRIES, wanted=st.booleans())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_mapped_long_table_is_the_one_that_is_read(rows, wanted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    (folder / "t.csv").write_text("who,item,value\n" + "".join(f"u{i},{k},{v}\n" for i, k, v in rows))
    names = ["3", "77", "1"] if wanted else None
    expected = read_features(folder / "t.csv", layout="long", names=names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corrvae.io.columns._BLOCK_BYTES", 64)
        patch.setattr(mapped, "_ENTRIES", 5)
        matrix = map_table(folder / "t.csv", folder / "x", layout="long", names=names)
    features = read_features(folder / "x")
    assert (features.ids.tolist(), features.names) == (expected.ids.tolist(), expected.names)
    assert np.array_equal(matrix.toarray(), expected.matrix.toarray())
    assert matrix.has_canonical_format
    assert sorted(place.name for place in (folder / "x").iterdir()) == [
        "data.npy", "ids.parquet", "indices.npy", "indptr.npy", "names.parquet", "shape.npy",
    ]  # fmt: skip


def test_repeats_are_reported_and_wide_tables_rejected(tmp_path):
    (tmp_path / "t.csv").write_text("who,item,value\nann,tea,1\nbob,tea,1\nann,tea,2\n")
    with pytest.warns(UserWarning, match="1 row with an id and item that were there before"):
        assert map_table(tmp_path / "t.csv", tmp_path / "x").toarray().tolist() == [[3], [1]]
    (tmp_path / "wide.csv").write_text("id,a,b,c,d,e\nann,1,2,3,4,5\n")
    with pytest.raises(DataFileError, match="this is a wide table; only a long one is mapped"):
        map_table(tmp_path / "wide.csv", tmp_path / "y")
