"""Index work of a step in single passes: the rows it picks, the vertices it meets.

A step touches a few hundred rows. Written as a dozen NumPy calls each, the work below took as long as the step's matrix
products.
"""

import numpy as np

from corrvae.compiling import kernel


@kernel()
def pick_rows(indptr, indices, data, rows):
    """Copy rows of a CSR matrix: give values, columns, offsets, and the row of each entry."""
    offsets = np.empty(len(rows) + 1, np.int64)
    offsets[0] = 0
    for r in range(len(rows)):
        offsets[r + 1] = offsets[r] + indptr[rows[r] + 1] - indptr[rows[r]]
    values = np.empty(offsets[-1], np.float32)
    columns = np.empty(offsets[-1], np.int64)
    row_of = np.empty(offsets[-1], np.int64)
    for r in range(len(rows)):
        begin, place = indptr[rows[r]], offsets[r]
        for entry in range(offsets[r + 1] - place):
            values[place + entry] = data[begin + entry]
            columns[place + entry] = indices[begin + entry]
            row_of[place + entry] = r
    return values, columns, offsets, row_of


@kernel()
def sort_by_column(columns, row_of, n_columns):
    """Order entries by column, rows ascending: give the order, the rows in it, and where each column begins."""
    offsets = np.zeros(n_columns + 1, np.int64)
    for column in columns:
        offsets[column + 1] += 1
    for column in range(n_columns):
        offsets[column + 1] += offsets[column]
    free = offsets[:-1].copy()
    order = np.empty(len(columns), np.int64)
    rows = np.empty(len(columns), np.int64)
    for entry in range(len(columns)):
        place = free[columns[entry]]
        free[columns[entry]] = place + 1
        order[place] = entry
        rows[place] = row_of[entry]
    return order, rows, offsets


@kernel()
def number_vertices(drawn, ends, slot, vertices, numbers):
    """Write the distinct vertices in the order of their first occurrence, and where the ends are among them.

    Gives the number of distinct vertices. The drawn ones, which differ from each other, come first. `slot` is a scratch
    array with a place for each vertex of the graph. Its contents do not matter: a vertex counts as seen only if its
    slot points to a number that points back.
    """
    count = len(drawn)
    for position in range(count):
        vertices[position] = drawn[position]
        slot[drawn[position]] = position
    for end in range(len(ends)):
        vertex = ends[end]
        number = slot[vertex]
        if not (0 <= number < count and vertices[number] == vertex):
            number = count
            slot[vertex] = number
            vertices[number] = vertex
            count += 1
        numbers[end] = number
    return count
