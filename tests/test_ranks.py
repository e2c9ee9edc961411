"""The processes that do one job together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.ranks import Ranks, current_ranks, is_launched, join_ranks
from support.several import run_ranks

COUNT = 3


@given(length=st.integers(0, 100), count=st.integers(1, 12))
def test_shares_follow_each_other_and_are_even(length, count):
    parts = [list(range(length))[Ranks(index, count).share(length)] for index in range(count)]
    assert [thing for part in parts for thing in part] == list(range(length))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_process_is_alone():
    alone, array = Ranks(), np.arange(3)
    assert alone.is_first
    assert alone.sum(array) is array
    assert alone.gather_rows(array) is array
    assert alone.gather(array)[0] is array
    assert alone.tell({"a": 1}) == {"a": 1}
    assert alone.any(True)
    assert not alone.any(False)
    alone.wait()
    assert current_ranks() == alone


def test_a_process_that_was_not_launched_joins_nobody(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert not is_launched()  # one process of one
    with join_ranks() as ranks:
        assert ranks == Ranks()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert is_launched()
    monkeypatch.delenv("MASTER_PORT")
    assert not is_launched()


def exchange(base):
    with join_ranks() as ranks:  # the caller's group, which stays
        own = base + ranks.index
    assert current_ranks() == ranks
    rows = np.full((ranks.index, 2), float(ranks.index))
    ranks.wait()
    return {
        "index": ranks.index,
        "sum": ranks.sum(own),
        "own": own,
        "parts": [len(part) for part in ranks.gather(rows)],
        "rows": ranks.gather_rows(rows),
        "told": ranks.tell({"from": ranks.index, "é": [1, None]}),
        "any": [ranks.any(ranks.index == 2), ranks.any(False)],
    }


def test_ranks_exchange_what_they_have():
    found = run_ranks(COUNT, exchange, np.array([10, 20]))
    for index, results in enumerate(found):
        assert results["index"] == index
        assert results["own"].tolist() == [10 + index, 20 + index]  # summing leaves it alone
        assert results["sum"].tolist() == [33, 63]
        assert results["parts"] == [0, 1, 2]
        assert results["rows"].tolist() == [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
        assert results["told"] == {"from": 0, "é": [1, None]}
        assert results["any"] == [True, False]


def lose_one():
    import os

    from corrvae.errors import LostRankError

    ranks = current_ranks()
    if ranks.index == 1:
        os._exit(0)
    with pytest.raises(LostRankError, match="another process of this run has ended"):
        ranks.sum(np.zeros(2))


def test_a_rank_that_ends_is_told_to_the_others(tmp_path):
    with pytest.raises(FileNotFoundError, match="result-1"):  # the others found out
        run_ranks(2, lose_one)
