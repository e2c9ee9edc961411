import json

import numpy as np
import pytest

from corrvae.training import History
from corrvae.training.history import TERMS, RunningMeans


def test_columns_grow_row_by_row():
    history = History()
    assert history.n_rows == 0
    history.append({"step": 5, "total": -2.0})
    history.append({"step": 10, "total": -1.5})
    assert list(history) == ["step", "total"]
    assert history.n_rows == 2
    np.testing.assert_array_equal(history["total"], [-2.0, -1.5])
    np.testing.assert_array_equal(history["step"], [5, 10])
    assert repr(history) == "History(2 evaluations: step, total)"
    assert json.loads(json.dumps(history.columns)) == history.columns


def test_running_means_begin_anew_and_survive_a_save():
    means = RunningMeans()
    means.add({"total": 1.0, "edge": 0.1})
    saved = json.loads(json.dumps(means.state()))
    means = RunningMeans()
    means.restore(saved)
    means.add({"total": 4.0, "edge": 0.2})
    assert means.take() == {**dict.fromkeys(TERMS, 0.0), "total": 2.5, "edge": (0.1 + 0.2) / 2}
    means.add({"total": 7.0})
    assert means.take()["total"] == 7.0


@pytest.mark.parametrize(
    "columns", [3, [1.0], {"step": 3}, {"step": [1], "total": []}, {"step": ["1"]}, {"s": [10**400]}]
)
def test_columns_from_a_file_are_checked(columns):
    with pytest.raises(ValueError, match="no columns"):
        History.of(columns)


def test_columns_from_a_file_are_taken_up():
    assert History.of({"step": [1, 2], "total": [0.5, -1.0]})["total"].tolist() == [0.5, -1.0]
    assert History.of({}).n_rows == 0


@pytest.mark.parametrize(
    "state",
    [
        {"count": -1, "sums": {}},
        {"count": "1", "sums": {}},
        {"count": 10**400, "sums": {}},
        {"count": 1, "sums": {"a": []}},
    ],
)
def test_sums_from_a_file_are_checked(state):
    with pytest.raises(ValueError, match="no sums"):
        RunningMeans().restore(state)
