"""Processes that find each other where others have been."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._C._distributed_c10d import HashStore

from corrvae.errors import LostRankError
from corrvae.meeting import meet

A_MOMENT = timedelta(seconds=0.02)
LONG = timedelta(minutes=1)


def come(store, index, count, delay=0.0, patience=LONG):
    time.sleep(delay)
    return meet(store, index, count, patience)


def start(store, count, delays):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda index: come(store, index, count, delays[index]), range(count)))


@settings(max_examples=10)
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=3), seed=st.integers(0, 100))
def test_each_start_has_one_name_of_its_own(counts, seed):
    """The number of processes may change from start to start, and any of them may come first."""
    store, chance = HashStore(), random.Random(seed)
    names = [start(store, count, [chance.choice([0, 0.03]) for _ in range(count)]) for count in counts]
    assert all(len(set(of_one_start)) == 1 for of_one_start in names)
    assert len({of_one_start[0] for of_one_start in names}) == len(counts)


@pytest.mark.parametrize("gone", [[0], [1], [1, 2], [0, 1]])
def test_what_is_left_of_a_start_that_failed_misleads_nobody(gone):
    """Some of the processes asked or answered, and ended before all had come."""
    store = HashStore()
    with ThreadPoolExecutor(3) as pool:
        for call in [pool.submit(come, store, index, 3, 0.0, A_MOMENT) for index in gone]:
            assert isinstance(call.exception(), LostRankError)
    names = start(store, 3, [0.1, 0, 0])  # the others look first at the question of one that is gone
    assert len(set(names)) == 1


def test_one_that_nobody_joins_says_so():
    with pytest.raises(LostRankError, match="not all processes came"):
        meet(HashStore(), 0, 2, A_MOMENT)
    with pytest.raises(LostRankError, match="not all processes came"):
        meet(HashStore(), 1, 2, A_MOMENT)
