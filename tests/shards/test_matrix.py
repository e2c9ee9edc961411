import pickle
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from corrvae.errors import FolderError
from corrvae.shards import matrix as module
from support.rows import matrices
from support.shards import counts, sharded, whole


@settings(max_examples=30)
@given(matrices(max_rows=9), st.integers(1, 4), st.integers(0, 2**16))
def test_rows_are_those_of_the_matrix(tmp_path_factory, matrix, most_rows, seed):
    expected = matrix.toarray().astype(np.float32)
    found = sharded(tmp_path_factory.mktemp("x"), matrix, most_rows)
    picked = np.random.default_rng(seed).integers(0, len(expected), 7)
    rows = found.pick(picked)
    again = sparse.csr_array((rows.values, rows.columns, rows.offsets), shape=(7, expected.shape[1]))
    np.testing.assert_array_equal(again.toarray(), expected[picked])
    np.testing.assert_array_equal(rows.row_of, np.repeat(np.arange(7), np.diff(rows.offsets)))
    begin, end = sorted(np.random.default_rng(seed).integers(0, len(expected) + 1, 2).tolist())
    part = found[begin:end]
    if (begin, end) != (0, len(expected)):
        np.testing.assert_array_equal(part.toarray(), expected[begin:end])
    with patch.multiple(module, _PIECE_ROWS=2, _PIECE_ENTRIES=3):
        np.testing.assert_array_equal(whole(found), expected)
        begins = [begin for begin, _ in found.pieces()]
    assert begins == sorted(set(begins))
    assert (found.shape, found.nnz) == (expected.shape, np.count_nonzero(expected))


def test_columns_can_be_others(tmp_path):
    table = counts()
    found = sharded(tmp_path, table, 20)
    places = np.full(25, -1)
    places[[3, 7, 24, 0]] = [4, 0, 2, 1]
    moved = found.with_columns(places, 6)
    expected = np.zeros((60, 6), np.float32)
    expected[:, [4, 0, 2, 1]] = table.toarray()[:, [3, 7, 24, 0]]
    np.testing.assert_array_equal(whole(moved), expected)
    picked = moved.pick(np.array([50, 2, 2, 31]))
    again = sparse.csr_array((picked.values, picked.columns, picked.offsets), shape=(4, 6))
    assert again.has_canonical_format
    np.testing.assert_array_equal(again.toarray(), expected[[50, 2, 2, 31]])
    twice = moved.with_columns(np.array([1, -1, 0, -1, 2, -1]), 3)
    np.testing.assert_array_equal(whole(twice), expected[:, [2, 0, 4]])
    np.testing.assert_array_equal(whole(pickle.loads(pickle.dumps(twice))), expected[:, [2, 0, 4]])


def test_a_pickle_is_the_path(tmp_path):
    found = sharded(tmp_path, counts())
    again = pickle.loads(pickle.dumps(found))
    assert len(pickle.dumps(found)) < 1000
    np.testing.assert_array_equal(whole(again), whole(found))
    data = pickle.dumps(found)
    sharded(tmp_path, counts(50))
    with pytest.raises(FolderError, match=r"it holds a matrix of shape \(50, 25\)"):
        pickle.loads(data)


def test_few_shards_are_mapped_at_once(tmp_path):
    with patch.object(module, "most_maps", lambda: 14):
        found = sharded(tmp_path, counts(), 2)
    np.testing.assert_array_equal(found.pick(np.arange(60)).values, counts().data)
    assert len(found._mapped) == 4


def test_rows_that_there_are_not(tmp_path):
    found = sharded(tmp_path, counts())
    for rows in ([60], [-1], [3, 100]):
        with pytest.raises(IndexError, match="rows are 0 to 59"):
            found.pick(np.array(rows))
    with pytest.raises(IndexError, match="one after the other"):
        found[::2]
    assert found[:] is found
    assert found.pick(np.array([], dtype=np.int64)).offsets.tolist() == [0]


def spoil(path, place, number, kind):
    data = bytearray(path.read_bytes())
    at = len(data) - np.load(path).nbytes + place * np.dtype(kind).itemsize
    data[at : at + np.dtype(kind).itemsize] = np.array([number], kind).tobytes()
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("part", "place", "number", "kind"),
    [
        ("offsets", 1, 2**40, "<i8"),
        ("offsets", 5, -7, "<i8"),
        ("columns", 3, 25, "<i4"),
        ("columns", 3, -1, "<i4"),
        ("columns", 1, 0, "<i4"),
    ],
)
def test_damage_is_noticed_wherever_rows_are_read(tmp_path, part, place, number, kind):
    table = counts()
    table = table[np.diff(table.indptr) > 1]
    sharded(tmp_path, table, 100)
    spoil(tmp_path / "shards" / "shards" / f"000000.{part}.npy", place, number, kind)
    found = module.ShardedMatrix(
        tmp_path, [module.Shard.find(tmp_path / "shards" / "shards", 0, *table.shape[:1], table.nnz)], 25
    )
    with pytest.raises(FolderError, match="damaged"):
        found.pick(np.arange(table.shape[0]))
    with pytest.raises(FolderError, match="damaged"):
        whole(found)


def test_rows_whose_lengths_wrap_round_are_damage(tmp_path):
    table = sparse.csr_array(np.ones((5, 2), np.float32))
    sharded(tmp_path, table, 100)
    for place, number in enumerate(
        (2**63 - 1, -(2**63), -1, 4), start=1
    ):  # each is the one before and at most 2**63 - 1
        spoil(tmp_path / "shards" / "shards" / "000000.offsets.npy", place, number, "<i8")
    found = module.ShardedMatrix(tmp_path, [module.Shard.find(tmp_path / "shards" / "shards", 0, 5, 10)], 2)
    with pytest.raises(FolderError, match=r"offsets\.npy: damaged: its rows do not follow each other"):
        whole(found)
    with pytest.raises(FolderError, match="damaged"):
        found.pick(np.arange(5))


def test_a_first_or_last_row_out_of_place_is_noticed_when_opened(tmp_path):
    sharded(tmp_path, counts(), 100)
    spoil(tmp_path / "shards" / "shards" / "000000.offsets.npy", 60, 3, "<i8")
    with pytest.raises(FolderError, match="its rows are not those of"):
        module.Shard.find(tmp_path / "shards" / "shards", 0, 60, counts().nnz)
