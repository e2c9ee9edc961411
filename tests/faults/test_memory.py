"""Features larger than memory: what a process owns does not grow with the entries of a mapped table."""

from pathlib import Path

import numpy as np
import pytest

import fragile

PER_ROW, COLUMNS = 500, 5000
HAS_MEASURE = Path("/proc/self/status").exists() and "RssAnon" in Path("/proc/self/status").read_text()


def write(folder, n_rows):
    """Write rows with an entry in every tenth column, as ``np.save`` writes the arrays of a CSR matrix."""
    folder.mkdir()
    columns = np.tile(np.arange(0, COLUMNS, COLUMNS // PER_ROW, dtype=np.int32), n_rows)
    np.save(folder / "indices.npy", columns)
    np.save(folder / "data.npy", np.random.default_rng(0).poisson(1.0, len(columns)).astype(np.float32))
    np.save(folder / "indptr.npy", np.arange(0, len(columns) + 1, PER_ROW, dtype=np.int32))
    np.save(folder / "shape.npy", np.array([n_rows, COLUMNS]))
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.skipif(not HAS_MEASURE, reason="this system does not tell own memory from mapped files")
def test_own_memory_does_not_grow_with_the_entries_of_a_mapped_table(helper, tmp_path):
    sizes, own = [], []
    for n_rows in (8_000, 32_000):
        sizes.append(write(tmp_path / str(n_rows), n_rows))
        ending = helper.run(fragile.search_mapped, folder=str(tmp_path / str(n_rows)), n_neighbors=3)
        assert ending.code == 0, ending.result
        assert (ending.result["rows"], ending.result["found"]) == (n_rows, 150)
        own.append(ending.result["own_bytes"])
    assert sizes[1] - sizes[0] > 90e6
    assert own[1] - own[0] < 0.3 * (sizes[1] - sizes[0]), (own, sizes)
