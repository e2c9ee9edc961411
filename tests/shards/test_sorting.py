from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.monitor import DONE, STOP, Cancelled, Monitor
from corrvae.shards import sorting
from corrvae.shards.entries import add_up
from corrvae.shards.sorting import Spool, sorted_rows

SMALL = {"_BLOCK": 5, "_BIN_ENTRIES": 3, "_BIN_ROWS": 2, "_FILES": 2}


def spooled(folder, rows, columns, values, size=4):
    spool = Spool(folder)
    for begin in range(0, len(rows), size):
        spool.append(*(part[begin : begin + size] for part in (rows, columns, values)))
    spool.close()
    return spool


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_sorted_in_parts_is_the_same_as_at_once(tmp_path_factory, seed, in_order):
    generator = np.random.default_rng(seed)
    n_rows = int(generator.integers(1, 20))
    rows = generator.integers(0, n_rows, generator.integers(0, 80))
    rows = np.sort(rows) if in_order else rows
    columns, values = generator.integers(0, 4, len(rows)), generator.normal(size=len(rows)).astype(np.float32)
    folder, monitor = tmp_path_factory.mktemp("x"), Monitor()
    spool = spooled(folder, rows, columns, values)
    assert spool.in_order == bool((np.diff(rows) >= 0).all())
    with patch.multiple(sorting, **SMALL):
        parts = list(sorted_rows(spool, (n_rows, 4), monitor))
    expected = add_up(rows, columns, values, (n_rows, 4))
    found = np.concatenate([part.matrix.toarray() for part in parts])
    np.testing.assert_array_equal(found, expected.matrix.toarray())
    assert sum(part.n_repeats for part in parts) == expected.n_repeats
    assert monitor.control[DONE] <= (monitor.total or 0)
    assert spool.in_order or not list(folder.iterdir())


def test_bins_keep_to_their_limits():
    counts = np.array([0, 3, 1, 1, 1, 9, 0, 0, 0, 2])
    with patch.multiple(sorting, **SMALL):
        bins = sorting._bins(counts)
    assert (bins[0], bins[-1]) == (0, 10)
    for begin, end in pairwise(bins):
        assert 1 <= end - begin <= 2
        assert counts[begin:end].sum() <= 3 or end - begin == 1


def test_it_stops_when_asked_to(tmp_path):
    spool = spooled(tmp_path, np.array([4, 0, 1]), np.zeros(3, np.int64), np.ones(3, np.float32))
    monitor = Monitor()
    with patch.multiple(sorting, **SMALL):
        parts = sorted_rows(spool, (5, 1), monitor)
        next(parts)
        monitor.control[STOP] = 1
        with pytest.raises(Cancelled):
            next(parts)
