"""The processes that do one job together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.errors import DataFileError
from corrvae.ranks import Ranks, alone, current_ranks, is_launched, join_ranks, lost_by
from support.several import run_ranks

COUNT = 3


@given(length=st.integers(0, 100), count=st.integers(1, 12))
def test_shares_follow_each_other_and_are_even(length, count):
    parts = [list(range(length))[Ranks(index, count).share(length)] for index in range(count)]
    assert [thing for part in parts for thing in part] == list(range(length))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_process_is_alone():
    one, array = Ranks(), np.arange(3)
    assert one.is_first
    assert one.sum(array) is array
    assert one.gather_rows(array) is array
    assert one.gather(array)[0] is array
    assert one.hand_out(array) is array
    assert one.tell({"a": 1}) == {"a": 1}
    assert one.any(True)
    assert not one.any(False)
    one.wait()
    error = ValueError("row 3")
    with pytest.raises(ValueError, match="row 3") as met, one.agreed():
        raise error
    assert met.value is error
    assert current_ranks() == one


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
        "handed": [ranks.hand_out(np.full(2, ranks.index, kind)) for kind in (np.uint64, np.float32)],
        "empty": ranks.hand_out(np.empty((0, 3))).shape,
        "agreed": [agree(ranks, which, error) for which, error in FAILURES],
        "alone": count_alone(),
    }


FAILURES = [
    ((1,), ValueError("row 3")),
    ((0, 2), MemoryError("no room")),
    ((2,), DataFileError("a.csv", "is empty")),
    ((0,), OSError(28, "No space left", "z.npy")),
    ((), ValueError()),
]


def agree(ranks, which, error):
    """What a rank meets where some fail, inside an agreement that goes on for others."""
    try:
        with ranks.agreed():
            for _ in range(2):  # a failure is told once, whatever lies around it
                with ranks.agreed():
                    if ranks.index in which:
                        raise error
    except Exception as met:
        return type(met).__name__, str(met), getattr(met, "errno", None), met is error
    return None


def count_alone():
    with alone():
        return current_ranks().count


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
        assert [(array.dtype, array.tolist()) for array in results["handed"]] == [("u8", [0, 0]), ("f4", [0.0, 0.0])]
        assert results["empty"] == (0, 3)
        assert results["alone"] == 1
        first, second, third, fourth, nothing = results["agreed"]
        assert first == ("ValueError", "row 3", None, index == 1)
        assert second == ("MemoryError", "no room", None, index == 0)  # that of the first rank
        assert third[:2] == ("DataFileError" if index == 2 else "ValueError", "a.csv: is empty")
        assert fourth[0] == "OSError"
        assert fourth[2] == 28
        assert nothing is None


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


def test_a_loss_is_told_in_the_first_words_of_the_connection():
    said = "[/gloo/tcp/pair.cc:537] Read error [127.0.0.1]:23231: Connection reset by peer. This is caused by.\nMore."
    assert lost_by(RuntimeError(said)).problem == "Read error [127.0.0.1]:23231: Connection reset by peer"
    assert lost_by(RuntimeError("")).problem == "no reason given"
