import numpy as np
import pandas as pd
import pytest

from corrvae.errors import DataFileError
from corrvae.pictures.run_colours import colour_by_column, colour_by_labels
from support.runs import write_rows

IDS = np.array(["a", "b", "c", "d"], dtype=object)


def test_labels_are_numbered_groups():
    found = colour_by_labels(np.array([2, 0, 2]), "cluster")
    assert found.groups.tolist() == [2.0, 0.0, 2.0]
    assert found.names == {0.0: "cluster 0", 2.0: "cluster 2"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_kinds_are_groups_by_name_and_absent_points_come_last(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    frame = pd.DataFrame({"id": ["b", "zed", "a", "d"], "other": [1, 2, 3, 4], "town": ["Rome", "Bonn", "Oslo", ""]})
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    found = colour_by_column(f"{path}:town", IDS)
    assert found.names == {0.0: "Oslo", 1.0: "Rome", 2.0: "not given"}
    assert found.groups.tolist() == [0.0, 1.0, 2.0, 2.0]
    assert found.title == "town"


def test_amounts_are_cut_into_fifths(tmp_path):
    path = write_rows(tmp_path / "t.csv", [("id", "age"), *((k, 10 * k) for k in range(20))])
    found = colour_by_column(f"{path}:age", np.arange(21))
    assert np.bincount(found.groups.astype(int)).tolist() == [4, 4, 4, 4, 4, 1]
    assert (np.diff(found.groups[:20]) >= 0).all()
    assert found.names[5.0] == "not given"
    assert found.names[0.0] == "0 to 38"


def test_what_is_wrong_is_said(tmp_path):
    path = write_rows(tmp_path / "t.csv", [("id", "age"), ("x", 1)])
    with pytest.raises(DataFileError, match="none of its ids, such as 'x'"):
        colour_by_column(f"{path}:age", IDS)
    with pytest.raises(DataFileError, match="no column 'size' beside the ids; there are age"):
        colour_by_column(f"{path}:size", IDS)
    with pytest.raises(ValueError, match="FILE:COLUMN, got 'age'"):
        colour_by_column("age", IDS)
    with pytest.raises(DataFileError, match="no such file"):
        colour_by_column(f"{tmp_path}/none.csv:age", IDS)
