import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from corrvae.answers import naming
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


def test_fields_may_hold_line_ends_in_quotes_and_signs_that_end_lines_elsewhere(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('id,note,town\r\na,"two\n\nlines",Rome\r\nb,c\u2028d,Oslo\r\n"c\nd",,Bonn\r\n'.encode())
    found = colour_by_column(f"{path}:town", np.array(["a", "b", "c\nd"], dtype=object))
    assert found.names == {0.0: "Bonn", 1.0: "Oslo", 2.0: "Rome"}
    assert found.groups.tolist() == [2.0, 1.0, 0.0]


def test_a_number_that_is_none_is_not_given(tmp_path):
    path = tmp_path / "t.parquet"
    ages = pa.array([*(float(k) for k in range(10)), float("nan"), None])
    parquet.write_table(pa.table({"id": list(range(12)), "age": ages}), path)
    found = colour_by_column(f"{path}:age", np.arange(12))
    assert found.names[5.0] == "not given"
    assert found.groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_a_parquet_file_is_checked_before_it_is_decoded(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"id": [0, 1], "town": ["Rome", "Oslo"]}), path)
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:-8] + b"\xff\xff\xff\x7fPAR1", b"PAR1" + bytes(30) + b"PAR1"):
        path.write_bytes(damaged)
        with pytest.raises(DataFileError, match="this Parquet file cannot be read"):
            colour_by_column(f"{path}:town", np.arange(2))
    # a few hundred bytes that stand for a gigabyte
    parquet.write_table(pa.table({"id": range(1000), "town": ["x" * 1_000_000] * 1000}), path, compression="zstd")
    with pytest.raises(DataFileError, match=r"cannot be read \(its strings take"):
        colour_by_column(f"{path}:town", np.arange(2))
    parquet.write_table(pa.table({"id": [[0], [1]], "town": ["Rome", "Oslo"]}), path)
    with pytest.raises(DataFileError, match="its first column holds list<element: int64>; ids are integers or strings"):
        colour_by_column(f"{path}:town", np.arange(2))


def test_a_text_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"id,town\n0,Rome\n" * 100))
    monkeypatch.setattr(naming, "_MOST_TEXT_BYTES", 100)
    with pytest.raises(DataFileError, match="has more than 100 bytes"):
        colour_by_column(f"{path}:town", np.arange(2))
