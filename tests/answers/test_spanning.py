import numpy as np
import pytest

from corrvae.answers.spanning import spanning_table
from corrvae.errors import DataFileError
from support.runs import write_rows

TRIANGLE_AND_TAIL = [("from", "to", "strength"), ("a", "b", 1), ("a", "c", 1), ("b", "c", 2), ("c", "d", 5)]


def test_weights_stand_beside_their_edges(tmp_path):
    table = spanning_table(write_rows(tmp_path / "g.csv", TRIANGLE_AND_TAIL))
    assert list(zip(table.columns["source"], table.columns["target"], strict=True)) == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
        ("c", "d"),
    ]
    np.testing.assert_allclose(table.columns["weight"], [2 / 3, 2 / 3, 2 / 3, 1.0])
    assert table.facts["method"] == "exact"
    assert "conductance" not in table.columns


def test_conductances_count_when_their_column_is_named(tmp_path):
    table = spanning_table(write_rows(tmp_path / "g.csv", TRIANGLE_AND_TAIL), conductance="strength")
    np.testing.assert_allclose(table.columns["weight"], [0.6, 0.6, 0.8, 1.0])
    assert table.columns["conductance"].tolist() == [1, 1, 2, 5]


def test_estimates_have_their_error_and_are_the_same_for_a_seed(tmp_path):
    path = write_rows(tmp_path / "g.csv", TRIANGLE_AND_TAIL)
    one, two = (spanning_table(path, method="sample", seed=3) for _ in range(2))
    assert one.columns["weight"].tolist() == two.columns["weight"].tolist()
    assert one.facts["error"] <= 0.05
    np.testing.assert_allclose(one.columns["weight"], [2 / 3, 2 / 3, 2 / 3, 1.0], atol=0.1)


def test_what_is_wrong_is_said(tmp_path):
    path = write_rows(tmp_path / "g.csv", TRIANGLE_AND_TAIL)
    with pytest.raises(ValueError, match="method must be auto, exact, sketch or sample, not 'quick'"):
        spanning_table(path, method="quick")
    with pytest.raises(DataFileError, match="no column named 'width'"):
        spanning_table(path, conductance="width")
