"""Rows out of a shard that lies on the disk, where any other program may have written to it: each place is checked."""

from corrvae.compiling import kernel


@kernel()
def measure_rows(indptr, rows, places, n_entries, offsets):
    """Write the number of entries of each row behind its place; False if a row has an impossible one."""
    for r in range(len(rows)):
        begin, end = indptr[rows[r]], indptr[rows[r] + 1]
        if not 0 <= begin <= end <= n_entries:
            return False
        offsets[places[r] + 1] = end - begin
    return True


@kernel()
def copy_rows(indptr, indices, data, rows, places, n_columns, offsets, values, columns, row_of):
    """Copy rows to where offsets say; False if columns are not ascending ones of the table."""
    for r in range(len(rows)):
        row = places[r]
        place, count = offsets[row], offsets[row + 1] - offsets[row]
        begin = indptr[rows[r]]
        if begin < 0 or begin > len(indices) - count:
            return False
        before = -1
        for entry in range(count):
            column = indices[begin + entry]
            if column <= before or column >= n_columns:
                return False
            before = column
            values[place + entry] = data[begin + entry]
            columns[place + entry] = column
            row_of[place + entry] = row
    return True
