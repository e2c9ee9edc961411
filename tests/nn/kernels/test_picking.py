import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.nn.kernels.picking import number_vertices, pick_rows, sort_by_column
from support.rows import matrices


@given(matrices(), st.integers(0, 2**16))
def test_picked_rows_are_scipys(matrix, seed):
    matrix = matrix.astype(np.float32)
    rows = np.random.default_rng(seed).integers(0, matrix.shape[0], 5)
    values, columns, offsets, row_of = pick_rows(matrix.indptr, matrix.indices, matrix.data, rows)
    expected = matrix[rows]
    np.testing.assert_array_equal(values, expected.data)
    np.testing.assert_array_equal(columns, expected.indices)
    np.testing.assert_array_equal(offsets, expected.indptr)
    np.testing.assert_array_equal(row_of, np.repeat(np.arange(5), np.diff(expected.indptr)))


@given(matrices())
def test_sorting_by_column_is_scipys_transposition(matrix):
    row_of = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order, rows, offsets = sort_by_column(matrix.indices.astype(np.int64), row_of, matrix.shape[1])
    expected = sparse.csc_array(matrix)
    np.testing.assert_array_equal(matrix.data[order], expected.data)
    np.testing.assert_array_equal(rows, expected.indices)
    np.testing.assert_array_equal(offsets, expected.indptr)


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 2**16))
def test_vertices_are_numbered_in_order_of_first_occurrence(n_vertices, n_ends, seed):
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(n_vertices)[: generator.integers(0, n_vertices + 1)]
    ends = generator.integers(0, n_vertices, n_ends)
    # whatever an earlier step left in the scratch array must not matter
    slot = generator.integers(-3, n_vertices + 3, n_vertices)
    vertices, numbers = np.empty(len(drawn) + len(ends), np.int64), np.empty(len(ends), np.int64)
    vertices = vertices[: number_vertices(drawn, ends, slot, vertices, numbers)]
    assert vertices.tolist() == list(dict.fromkeys([*drawn.tolist(), *ends.tolist()]))
    np.testing.assert_array_equal(vertices[numbers], ends)
