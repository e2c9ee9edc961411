from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.base import BaseEstimator

from corrvae import tables
from corrvae.shards import matrix as shards
from corrvae.tables import check_weights, empty_rows, fingerprint, own_copy, read_table, row_totals, shape_of
from support.rows import matrices
from support.shards import counts, sharded


class Reader(BaseEstimator):
    """An estimator that has learned nothing yet."""


def read(X, **options):
    return read_table(Reader(), X, reset=True, **options)


def dense(table):
    matrix = table.matrix
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


@given(matrices())
def test_every_kind_of_table_is_read_as_the_same_numbers(matrix):
    array = matrix.toarray()
    names = [f"c{column}" for column in range(array.shape[1])]
    kinds = [
        array,
        np.asfortranarray(array),
        matrix,
        sparse.csc_matrix(array),
        sparse.coo_array(array),
        pd.DataFrame(array, columns=names),
        pl.DataFrame(array, schema=names),
        array.tolist(),
    ]
    for X in kinds:
        np.testing.assert_allclose(dense(read(X)), array, rtol=1e-6)


def test_a_memory_map_stays_one(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(30))
    table = read(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert isinstance(table.matrix, np.memmap)


def test_mostly_zeros_become_sparse_and_callers_keep_their_data():
    array = np.eye(30)
    assert sparse.issparse(read(array).matrix)
    assert isinstance(read(np.ones((5, 4))).matrix, np.ndarray)
    repeated = sparse.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_array_equal(dense(read(repeated)), [[2.0, 1.0]])
    assert repeated.nnz == 3


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"), (1e39, "too large for float32")]
)
def test_what_is_no_number_is_named_with_its_place(make, value, words):
    array = np.ones((6, 4))
    array[5, 3] = array[4, 2] = value
    with pytest.raises(ValueError, match=rf"{words}.*|.*row 4, column 2") as caught:
        read(make(array))
    assert words in str(caught.value)
    assert "row 4, column 2" in str(caught.value)


def test_nan_is_let_through_when_it_may_be_missing_and_infinity_is_not():
    array = np.array([[np.nan, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(dense(read(array, missing=True)), array)
    with pytest.raises(ValueError, match="row 1, column 0"):
        read(np.array([[np.nan, 1.0], [np.inf, 3.0]]), missing=True)


def test_a_place_far_down_a_memory_map_is_named(tmp_path):
    array = np.ones((5000, 2), dtype=np.float32)
    array[4321, 1] = np.nan
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ValueError, match="row 4321, column 1"):
        read(np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_ids_come_from_an_index_that_does_more_than_count():
    frame = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"])
    assert read(frame).ids is None
    assert read(frame.iloc[[2, 0]]).ids.tolist() == [2, 0]
    frame.index = ["x", "y", "z"]
    assert read(frame).ids.tolist() == ["x", "y", "z"]
    assert read([[1.0, 2.0]]).ids is None
    assert read(pl.DataFrame({"a": [1.0]})).ids is None


@given(matrices())
def test_rows_are_summed_and_empty_ones_found(matrix):
    array = matrix.toarray()
    for X in (array, matrix):
        assert empty_rows(X).tolist() == np.flatnonzero((array == 0).all(1)).tolist()
        np.testing.assert_allclose(row_totals(X), array.sum(1), atol=1e-12)
        assert shape_of(X) == array.shape


def test_missing_entries_do_not_count_in_totals():
    array = np.array([[np.nan, 1.0], [2.0, 3.0]])
    assert row_totals(array).tolist() == row_totals(sparse.csr_array(array)).tolist() == [1.0, 5.0]


def test_half_precision_is_read_and_its_infinities_are_seen(tmp_path):
    array = np.ones((6, 4), dtype=np.float16)
    np.testing.assert_array_equal(dense(read(array)), array)
    np.testing.assert_array_equal(dense(read(np.eye(30, dtype=np.float16))), np.eye(30))
    array[4, 2] = np.inf
    np.save(tmp_path / "x.npy", array)
    for X in (array, np.load(tmp_path / "x.npy", mmap_mode="r")):
        with pytest.raises(ValueError, match=r"infinity \(inf\) in row 4, column 2"):
            read(X)


@pytest.mark.parametrize("index", [["a", "a", "b"], ["a", None, "b"], [1.0, np.nan, 2.0], [[1], [2], [3]]])
def test_an_index_that_names_no_vertices_is_refused_only_where_ids_are_needed(index):
    frame = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"], index=pd.Index(index, dtype=object))
    table = read(frame)
    assert table.distinct_ids is None
    frame.index = ["x", "y", "z"]
    assert read(frame).distinct_ids.tolist() == ["x", "y", "z"]


def test_an_index_with_holes_is_named():
    frame = pd.DataFrame(np.ones((2, 2)), columns=["a", "b"], index=["x", None])
    with pytest.raises(ValueError, match="the index of X has no id at position 1"):
        _ = read(frame).ids


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_copy_is_nobody_elses(make):
    X = np.ones((3, 4), dtype=np.float32)
    matrix = make(X)
    copy = own_copy(matrix)
    (matrix if make is np.asarray else matrix.data)[:] = 7.0
    np.testing.assert_array_equal(copy.toarray() if sparse.issparse(copy) else copy, np.ones((3, 4)))


def test_a_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert own_copy(mapped) is mapped


@given(matrices())
def test_a_fingerprint_is_of_the_numbers_however_they_are_stored(matrix):
    array = matrix.toarray()
    stored_zero = sparse.csr_array(matrix + 1e-60 * sparse.csr_array(np.ones(matrix.shape)), dtype=np.float32)
    with patch.multiple(tables, _ROWS=2, _CELLS=9):
        small = fingerprint(array)
    for X in (array, matrix, array.astype(np.float32), np.asfortranarray(array), stored_zero):
        assert fingerprint(X) == small


def test_a_fingerprint_tells_nan_from_zero():
    assert fingerprint(np.array([[np.nan, 1.0]])) != fingerprint(np.array([[0.0, 1.0]]))
    holes = np.array([[np.nan, 1.0, 0.0]])
    assert fingerprint(holes) == fingerprint(sparse.csr_array(holes))


@given(matrices(), matrices())
def test_a_fingerprint_tells_matrices_apart(one, other):
    for first, second in ((one, other), (one.toarray(), other.toarray())):
        same = first.shape == second.shape and np.array_equal(one.toarray(), other.toarray())
        assert (fingerprint(first) == fingerprint(second)) == same


def test_shards_are_looked_at_piece_by_piece_and_are_the_same_numbers(tmp_path):
    table = counts()
    matrix = sharded(tmp_path, table, 25)
    reader = Reader()
    with patch.multiple(shards, _PIECE_ROWS=4, _PIECE_ENTRIES=9):
        found = read_table(reader, matrix, reset=True)
        assert found.matrix is matrix
        assert (found.n_rows, found.ids, reader.n_features_in_) == (60, None, 25)
        assert fingerprint(matrix) == fingerprint(table)
        assert empty_rows(matrix).tolist() == empty_rows(table).tolist() != []
        np.testing.assert_array_equal(row_totals(matrix), row_totals(table))
    assert own_copy(matrix) is matrix
    assert check_weights(np.ones(60), found).tolist() == [1.0] * 60
    with pytest.raises(ValueError, match="X has 25 features, but Reader is expecting 3"):
        read_table(fitted(3), matrix, reset=False)


def fitted(n_features):
    reader = Reader()
    reader.n_features_in_ = n_features
    return reader


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_found_in_shards(tmp_path, value):
    table = counts()
    place = int(table.indptr[42]) + 1
    table.data[place] = value
    row = int(np.searchsorted(table.indptr, place, side="right")) - 1
    with pytest.raises(ValueError, match=f"in row {row}, column {table.indices[place]}"):
        read(sharded(tmp_path, table, 25))
    if np.isnan(value):
        assert read(sharded(tmp_path, table, 25), missing=True).n_rows == 60


@pytest.mark.parametrize("kind", ["pandas", "polars", "categories"])
def test_a_column_of_text_is_named(kind):
    columns = {"x": [1.0, 2.0], "who": ["ann", "bob"]}
    frame = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
    if kind == "categories":
        frame["who"] = frame["who"].astype("category")
    with pytest.raises(ValueError, match=r"column 'who' holds 'ann', which is not a number.*set_index"):
        read_table(BaseEstimator(), frame, reset=True)
