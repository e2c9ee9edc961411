"""Memory follows the entries of a sparse table, not its shape."""

from nursery import Call

N_ROWS, N_COLUMNS, SPARE = 20_000, 200_000, 1 << 30


def test_a_table_whose_dense_form_would_not_fit_is_fitted_within_a_gigabyte(nursery):
    assert 4 * N_ROWS * N_COLUMNS > 10 * SPARE
    arguments = {"n_rows": N_ROWS, "n_columns": N_COLUMNS, "spare": SPARE}
    (ending,) = nursery.run(Call("fragile:fit_wide", arguments, timeout=600.0))
    assert ending.code == 0, ending.errors
    assert ending.result == {"rows": N_ROWS, "found": 6}


def test_the_limit_is_one(nursery):
    """The same with less memory than its batches need, so that the test above proves something."""
    arguments = {"n_rows": 2000, "n_columns": N_COLUMNS, "spare": 1 << 26}
    (ending,) = nursery.run(Call("fragile:fit_wide", arguments, timeout=600.0))
    assert ending.code == 1
    assert "MemoryError" in ending.errors or "allocate" in ending.errors
