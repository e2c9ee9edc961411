"""Memory follows the entries of a sparse table, not its shape."""

from nursery import Call

N_ROWS, N_COLUMNS, SPARE = 20_000, 200_000, 1 << 28


def test_a_table_whose_dense_form_would_not_fit_is_fitted_within_a_quarter_of_a_gigabyte(nursery):
    assert 4 * N_ROWS * N_COLUMNS > 10 * SPARE
    arguments = {"n_rows": N_ROWS, "n_columns": N_COLUMNS, "spare": SPARE}
    (ending,) = nursery.run(Call("fragile:fit_wide", arguments, timeout=600.0))
    assert ending.code == 0, ending.errors
    assert ending.result == {"rows": N_ROWS, "found": 6}


def test_the_dense_form_does_not_fit(nursery):
    """So that the test above proves something."""
    arguments = {"n_rows": N_ROWS, "n_columns": N_COLUMNS, "spare": SPARE, "dense": True}
    (ending,) = nursery.run(Call("fragile:fit_wide", arguments, timeout=600.0))
    assert ending.code == 1
    assert "MemoryError" in ending.errors
