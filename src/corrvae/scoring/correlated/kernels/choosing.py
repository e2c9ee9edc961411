"""Which pairs of a block need the pair network, in an order that keeps the points of neighbouring pairs in cache."""

from corrvae.compiling import kernel

# Pairs are listed by small rectangles of this size: as many pairs as a tile, from few points.
_ROWS, _COLUMNS = 16, 16


@kernel()
def within_reach(lower, row_reach, column_reach, diagonal, rows, columns):
    """List the pairs whose lower bound either end's reach admits; return their number.

    On the diagonal only pairs with row <= column are listed.
    """
    count = 0
    n_rows, n_columns = lower.shape
    for row_begin in range(0, n_rows, _ROWS):
        row_end = min(row_begin + _ROWS, n_rows)
        for column_begin in range(0, n_columns, _COLUMNS):
            column_end = min(column_begin + _COLUMNS, n_columns)
            for row in range(row_begin, row_end):
                for column in range(max(column_begin, row) if diagonal else column_begin, column_end):
                    # so put that a not-a-number is listed, evaluated and reported
                    if not lower[row, column] > max(row_reach[row], column_reach[column]):
                        rows[count], columns[count] = row, column
                        count += 1
    return count


@kernel()
def first_at_least(values, begin, end, bound):
    """Position of the first of the ascending ``values[begin:end]`` that is at least `bound`, or `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < bound:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel()
def mark_undecided(lower, upper, group_offsets, members, target_offsets, limits, undecided):
    """Mark the pairs of which some target's limit lies between the bounds, for the queries grouped in the rows."""
    for row in range(len(lower)):
        for member in range(group_offsets[row], group_offsets[row + 1]):
            query = members[member]
            begin, end = target_offsets[query], target_offsets[query + 1]
            if begin == end:
                continue
            for column in range(lower.shape[1]):
                first = first_at_least(limits, begin, end, lower[row, column])
                if first < end and not limits[first] >= upper[row, column]:
                    undecided[row, column] = True


@kernel()
def marked(undecided, diagonal, rows, columns):
    """List the marked pairs as `within_reach` does; on the diagonal a pair counts if either order is marked."""
    count = 0
    n_rows, n_columns = undecided.shape
    for row_begin in range(0, n_rows, _ROWS):
        row_end = min(row_begin + _ROWS, n_rows)
        for column_begin in range(0, n_columns, _COLUMNS):
            column_end = min(column_begin + _COLUMNS, n_columns)
            for row in range(row_begin, row_end):
                for column in range(max(column_begin, row) if diagonal else column_begin, column_end):
                    if undecided[row, column] or (diagonal and undecided[column, row]):
                        rows[count], columns[count] = row, column
                        count += 1
    return count


@kernel()
def spread(rows, columns, values, diagonal, matrix):
    """Write the values of listed pairs into a matrix; on the diagonal in both orders."""
    for pair in range(len(rows)):
        matrix[rows[pair], columns[pair]] = values[pair]
        if diagonal:
            matrix[columns[pair], rows[pair]] = values[pair]
