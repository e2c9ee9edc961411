import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pyarrow import parquet

from corrvae.answers.tables import AnswerTable
from corrvae.answers.writing import CsvWriter, JsonWriter, check_file, plain, spell, write_table, writing
from corrvae.errors import FolderError

TABLE = AnswerTable(
    {"id": np.array(["a,b", 'c"d', "é\nf"], object), "score": np.array([0.1, 1 / 3, -2e-20]), "n": np.arange(3)},
    {"metric": "cosine", "exact": True},
    ("metric",),
)


@given(arrays.arrays(np.float32, 5, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_singles_come_back_as_they_were(values):
    assert np.array([float(text) for text in spell(values)], np.float32).tobytes() == values.tobytes()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_have_nine_digits(value):
    (text,) = spell(np.array([value]))
    assert float(text) == pytest.approx(value, rel=5.1e-9)
    assert plain(np.array([value])) == [float(text)]


def test_a_csv_file_holds_all_columns_and_repeated_facts(tmp_path):
    with writing(tmp_path / "t.csv") as writer:
        write_table(TABLE, writer)
    rows = list(csv.reader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8"), newline="")))
    assert rows == [
        ["id", "score", "n", "metric"],
        ["a,b", "0.1", "0", "cosine"],
        ['c"d', "0.333333333", "1", "cosine"],
        ["é\nf", "-2e-20", "2", "cosine"],
    ]


def test_a_parquet_file_keeps_every_digit_and_the_facts(tmp_path):
    with writing(tmp_path / "t.parquet", TABLE.facts) as writer:
        write_table(TABLE, writer)
    found = parquet.read_table(tmp_path / "t.parquet")
    assert found["score"].to_pylist() == TABLE.columns["score"].tolist()
    assert found["id"].to_pylist() == TABLE.columns["id"].tolist()
    assert found.schema.metadata[b"exact"] == b"true"


def test_blocks_are_written_one_after_the_other(tmp_path):
    for name in ("t.csv", "t.parquet"):
        with writing(tmp_path / name) as writer:
            for begin in (0, 2):
                writer.write({"id": np.arange(begin, begin + 2), "z0": np.ones(2, np.float32)})
    assert (tmp_path / "t.csv").read_text() == "id,z0\n0,1.0\n1,1.0\n2,1.0\n3,1.0\n"
    assert parquet.read_table(tmp_path / "t.parquet")["id"].to_pylist() == [0, 1, 2, 3]


def test_a_document_has_facts_once():
    stream = io.StringIO()
    writer = JsonWriter(stream, TABLE.facts)
    write_table(TABLE, writer)
    writer.close()
    document = json.loads(stream.getvalue())
    assert document["metric"] == "cosine"
    assert document["rows"][1] == {"id": 'c"d', "score": 0.333333333, "n": 1}


def test_a_table_without_rows_has_its_names(tmp_path):
    empty = AnswerTable({"id": np.empty(0, object), "score": np.empty(0)}, {"better": "lower"}, ("better",))
    stream = io.StringIO()
    write_table(empty, CsvWriter(stream))
    assert stream.getvalue() == "id,score,better\n"
    with writing(tmp_path / "t.parquet") as writer:
        write_table(empty, writer)
    assert parquet.read_table(tmp_path / "t.parquet").column_names == ["id", "score", "better"]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_breaks_off_leaves_the_old_file_and_no_draft(name, tmp_path):
    (tmp_path / name).write_text("old")

    def break_off():
        with writing(tmp_path / name) as writer:
            write_table(TABLE, writer)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_files_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(FolderError, match=r"must end in \.csv or \.parquet"):
        check_file(tmp_path / "t.xlsx", (".csv", ".parquet"))
    with pytest.raises(FolderError, match="no such folder to write to"):
        check_file(tmp_path / "nowhere" / "t.csv", (".csv",))
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(FolderError, match="a folder, not a file"):
        check_file(tmp_path / "d.csv", (".csv",))
