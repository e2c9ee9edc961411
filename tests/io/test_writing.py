import csv
import errno
import json
import math
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.errors import FolderError
from corrvae.io import replace_file, write_table, writing

TABLE = pa.table(
    {
        "id": ["ann", 'b "o", b', None],
        "rank": [1, 2, 3],
        "double": [0.1, 1 / 3, math.nan],
        "single": pa.array([0.1, 2 / 3, None], pa.float32()),
    }
)


def test_formats_by_the_ending_of_the_name(tmp_path):
    for name in ("t.csv", "t.tsv", "t.parquet", "t.json"):
        write_table(TABLE, tmp_path / name)
    for name, delimiter in (("t.csv", ","), ("t.tsv", "\t")):
        rows = list(csv.reader((tmp_path / name).read_text().splitlines(), delimiter=delimiter))
        assert rows == [
            ["id", "rank", "double", "single"],
            ["ann", "1", "0.1", "0.1"],
            ['b "o", b', "2", "0.333333333", "0.6666667"],
            ["", "3", "nan", ""],
        ]
    assert pq.read_table(tmp_path / "t.parquet").drop_columns("double").equals(TABLE.drop_columns("double"))
    assert json.loads((tmp_path / "t.json").read_text()) == [
        {"id": "ann", "rank": 1, "double": 0.1, "single": 0.1},
        {"id": 'b "o", b', "rank": 2, "double": 0.333333333, "single": 0.6666667},
        {"id": None, "rank": 3, "double": None, "single": None},
    ]
    with pytest.raises(FolderError, match=r"t\.docx: the name must end in one of \.csv, \.tsv, \.parquet, \.json"):
        write_table(TABLE, tmp_path / "t.docx")
    write_table(TABLE, tmp_path / "t.docx", file_format="csv")
    assert (tmp_path / "t.docx").read_bytes() == (tmp_path / "t.csv").read_bytes()


def test_standard_output(capsys):
    write_table(TABLE.select(["id", "rank"]), "-")
    assert capsys.readouterr().out == 'id,rank\nann,1\n"b ""o"", b",2\n,3\n'
    write_table(TABLE.select(["rank"]), "-", file_format="json")
    assert json.loads(capsys.readouterr().out) == [{"rank": 1}, {"rank": 2}, {"rank": 3}]


# Python's csv writer does not quote a carriage return alone.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"))


@given(values=st.lists(st.tuples(TEXTS, st.floats(width=32))), rows=st.integers(1, 4))
def test_round_trips(values, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    ids, numbers = [text for text, _ in values], np.array([number for _, number in values], np.float32)
    table = pa.table({"id": pa.array(ids, pa.string()), "x": pa.array(numbers)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_BLOCK_ROWS", rows)
        write_table(table, folder / "t.csv")
        write_table(table, folder / "t.json")
    with (folder / "t.csv").open(newline="", encoding="utf-8") as stream:
        header, *found = csv.reader(stream)
    assert header == ["id", "x"]
    assert [row[0] for row in found] == ids
    assert np.array_equal(np.array([row[1] for row in found], np.float32), numbers, equal_nan=True)
    documents = json.loads((folder / "t.json").read_text(encoding="utf-8"))
    assert [row["id"] for row in documents] == ids
    expected = [float(np.float32(number)) if np.isfinite(number) else None for number in numbers]
    assert [None if row["x"] is None else float(np.float32(row["x"])) for row in documents] == expected


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with pytest.raises(TypeError), replace_file(path) as stream:
        stream.writelines([b"half", None])
    assert path.read_text() == "old"
    with replace_file(link) as stream:
        stream.write(b"new")
    assert (path.read_text(), link.is_symlink()) == ("new", True)
    for call in ("os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(call, _full)
            with pytest.raises(FolderError, match=r"the disk is full.*what was there before is unchanged"):
                write_table(TABLE, path)
        assert path.read_text() == "new"
    assert {place.name for place in tmp_path.iterdir()} == {"t.csv", "link.csv"}


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(FolderError, match="there is no such folder; make it first"):
        write_table(TABLE, tmp_path / "no" / "t.csv")
    with pytest.raises(FolderError, match="Is a directory"):
        write_table(TABLE, tmp_path, file_format="csv")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_devices_are_written_to_directly(tmp_path):
    write_table(TABLE, "/dev/null", file_format="csv")
    for file_format in ("csv", "parquet"):
        with pytest.raises(FolderError, match="the disk is full"):
            write_table(TABLE, "/dev/full", file_format=file_format)


def _full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
