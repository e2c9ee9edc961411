"""Memory follows the entries of a sparse table, not its shape."""

import sys

import numpy as np
import pytest
from scipy import sparse

from corrvae.shards import write_shards
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


def make_shards(folder, n_rows, n_columns=2000, a_row=75):
    """Write so many rows, each with entries in every so many columns, a few at a time."""
    offsets = np.arange(0, 1001 * a_row, a_row)[:1001]
    columns = np.tile(np.arange(a_row, dtype=np.int32) * (n_columns // a_row), 1000)
    block = sparse.csr_array((np.ones(1000 * a_row, np.float32), columns, offsets), shape=(1000, n_columns))
    write_shards(folder, (block for _ in range(n_rows // 1000)), n_columns=n_columns, most_rows=30_000)
    return sum(path.stat().st_size for path in folder.rglob("*.npy"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell maps from memory")
def test_what_a_process_owns_does_not_grow_with_the_entries_of_shards(nursery, tmp_path):
    sizes = [make_shards(tmp_path / str(n_rows), n_rows) for n_rows in (10_000, 100_000)]
    assert sizes[1] > 60_000_000
    calls = [Call("fragile:fit_shards", {"folder": str(tmp_path / n)}, timeout=600.0) for n in ("10000", "100000")]
    endings = [nursery.run(call)[0] for call in calls]
    assert [ending.code for ending in endings] == [0, 0], endings[-1].errors
    few, many = (ending.result["most"] for ending in endings)
    assert [ending.result["rows"] for ending in endings] == [10_000, 100_000]
    assert many - few < 20_000_000 < (sizes[1] - sizes[0]) / 2, (few, many)
