import pytest

from corrvae.errors import DataFileError
from corrvae.reading import text as text_module
from corrvae.reading.text import TextTable
from support.tables import dense, read, refused


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,a,b,c,d\nann,1,2,3,x\n", "line 2 has 'x' in column 'd', which is not a number"),
        (
            'id,a,b,c,d\nann,1,2,"3,5",1\n',
            "line 2 has '3,5' in column 'c', which is not a number; decimals are parted by a point",
        ),
        ("# why\nid,a,b,c,d\nann,1,2,3,4\nbob,1\n", "line 4 has 2 fields where line 2 has 5 fields"),
        ("id,a,b,c,d\nann,1,2,3,4\n# why\n", "line 3 has 1 field where line 1 has 5 fields"),
        ("id,a,b,c,d\nann,1,2,3,4\n ,1,1,1,1\n", "line 3 has nothing in column 'id'"),
        ("1,2,3,4,5\n2,2,3,4,y\n", "line 2 has 'y' in column 4 (from 0), which is not a number"),
        ("id,a,b,c,a\nann,1,2,3,4\n", "there is more than one column named 'a'"),
    ],
)
def test_a_fault_is_told_with_its_line(content, problem, tmp_path):
    assert refused(tmp_path, content) == problem


def test_a_fault_in_a_later_batch_is_told_too(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "BLOCK_BYTES", 64)
    rows = "".join(f"n{k},{k},1,1,1\n" for k in range(100))
    assert refused(tmp_path, f"id,a,b,c,d\n{rows}z,1,1,1,?\n").startswith("line 102 has '?' in column 'd'")
    assert refused(tmp_path, f"id,a,b,c,d\n{rows},1,1,1,1\n") == "line 102 has nothing in column 'id'"


def test_batches_join_to_the_whole(tmp_path, monkeypatch):
    text = "id,a,b,c,d\n" + "".join(f"n{k},{k},{-k},0.5,1\n" for k in range(200))
    whole = read(tmp_path, text)
    monkeypatch.setattr(text_module, "BLOCK_BYTES", 128)
    pieces = read(tmp_path, text)
    assert pieces.ids.tolist() == whole.ids.tolist() == [f"n{k}" for k in range(200)]
    assert dense(pieces).tolist() == dense(whole).tolist() == [[k, -k, 0.5, 1] for k in range(200)]


def test_names_may_be_numbers_where_ids_have_a_usual_name(tmp_path):
    features = read(tmp_path, "ID,0,1,2,3\nann,5,6,7,8\n")
    assert (features.names, features.ids.tolist()) == (("0", "1", "2", "3"), ["ann"])
    assert read(tmp_path, "9,0,1,2,3\n8,5,6,7,8\n").names is None


def test_the_index_of_a_data_frame_needs_no_name(tmp_path):
    assert read(tmp_path, ",a,b,c,d\n3,5,6,7,8\n").ids.tolist() == [3]


def test_a_byte_order_mark_and_blanks_around_fields_do_not_count(tmp_path):
    features = read(tmp_path, "\ufeffid , a, b , c, d\n ann , 1, 2 ,3, 4\n")
    assert (features.ids.tolist(), features.names) == (["ann"], ("a", "b", "c", "d"))
    assert dense(features).tolist() == [[1, 2, 3, 4]]


def test_lines_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "SAMPLE_LINE_BYTES", 100)
    path = tmp_path / "wide.csv"
    path.write_text("id," + ",".join(map(str, range(100))) + "\n")
    with pytest.raises(DataFileError, match="its first line has 100 characters or more; write so wide a table as"):
        TextTable(path)


@pytest.mark.parametrize("gap", [",", "  "])
def test_an_id_may_begin_as_a_comment_does(gap, tmp_path):
    rows = ["id,a,b,c,d", "#1,1,2,3,4", "%2,5,6,7,8", "ann,9,9,9,9"]
    features = read(tmp_path, "# of a table\n" + "".join(row.replace(",", gap) + "\n" for row in rows))
    assert (features.ids.tolist(), features.names) == (["#1", "%2", "ann"], ("a", "b", "c", "d"))
    assert dense(features).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]]
    alone = read(tmp_path, "id,a,b,c,d\n#1,1,2,3,4\n#2,1,2,3,5\n")
    assert alone.ids.tolist() == ["#1", "#2"]


def test_columns_have_an_end(tmp_path, monkeypatch):
    path = tmp_path / "wide.csv"
    path.write_text("id,a,b\nann,1,2\n")
    monkeypatch.setattr(text_module, "MOST_COLUMNS", 3)
    assert TextTable(path).n_columns == 3
    monkeypatch.setattr(text_module, "MOST_COLUMNS", 2)
    with pytest.raises(DataFileError, match="it has 3 columns, more than 2; write so wide a table as Parquet"):
        TextTable(path)


def test_a_header_alone_is_told_as_a_table_without_rows(tmp_path):
    assert refused(tmp_path, "person,tea,coffee\n") == "has no rows: its one line, line 1, names the columns"
