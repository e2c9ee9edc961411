import numpy as np
import pytest

from corrvae.shards.kernels.picking import copy_rows, measure_rows

INDPTR, INDICES, DATA = np.array([0, 2, 2, 3]), np.array([1, 4, 0], np.int32), np.array([1.0, 2.0, 3.0], np.float32)
ROWS, PLACES = np.array([2, 0]), np.array([1, 0])


def copied(indptr=INDPTR, indices=INDICES, n_columns=5, offsets=None):
    offsets = np.array([0, 2, 3]) if offsets is None else offsets
    values, columns, row_of = np.zeros(3, np.float32), np.zeros(3, np.int64), np.zeros(3, np.int64)
    fine = copy_rows(indptr, indices, DATA, ROWS, PLACES, n_columns, offsets, values, columns, row_of)
    return fine, values.tolist(), columns.tolist(), row_of.tolist()


def test_rows_are_copied_to_their_places():
    offsets = np.zeros(3, np.int64)
    assert measure_rows(INDPTR, ROWS, PLACES, 3, offsets)
    assert offsets.tolist() == [0, 2, 1]
    assert copied() == (True, [1.0, 2.0, 3.0], [1, 4, 0], [0, 0, 1])


@pytest.mark.parametrize("indptr", [[0, 2, 2, 9], [-5, 2, 2, 3], [0, 2, 4, 3]])
def test_places_that_cannot_be_are_noticed(indptr):
    assert not measure_rows(np.array(indptr), ROWS, PLACES, 3, np.zeros(3, np.int64))


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([4, 1, 0], np.int32)},
        {"indices": np.array([1, 1, 0], np.int32)},
        {"indices": np.array([1, 5, 0], np.int32)},
        {"indices": np.array([-1, 4, 0], np.int32)},
        {"indptr": np.array([2, 4, 4, 5])},
        {"indptr": np.array([0, 2, -1, 0])},
    ],
)
def test_entries_that_cannot_be_are_noticed(changes):
    assert not copied(**changes)[0]
