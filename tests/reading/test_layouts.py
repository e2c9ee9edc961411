import pytest

from corrvae.errors import DataFileError
from corrvae.reading.layouts import check_layout, find_layout, long_positions, tell_long
from corrvae.reading.text import TextTable


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("id,a\nann,1\nbob,2\n", "wide"),
        ("id,item\nann,1\nann,2\n", "long"),
        ("id,a\nann,tea\nbob,tea\n", "long"),  # what is no number cannot be a feature
        ("id,a,b\nann,,1\nbob,2,3\n", "wide"),  # an empty cell is no item
        ("userId,movieId,rating,timestamp\n1,7,5,99\n2,7,5,98\n", "long"),  # a usual name
        ("id,a,b,c\n1,7,5,99\n2,7,5,98\n", "wide"),
        ("id,a,b,c,d\n1,7,5,99,1\n1,7,5,98,1\n", "wide"),  # too many columns
    ],
)
def test_the_first_rows_tell(text, layout, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    assert find_layout(TextTable(tmp_path / "table.csv"), 0) == layout


@pytest.mark.parametrize(
    "text", ["person,height,weight,age\nann,1,2,3\nbob,4,5,6\nann,7,8,9\n", "ann 1 2\nbob 4 5\nann 7 8\n"]
)
def test_an_id_that_is_there_twice_does_not_tell(text, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    table = TextTable(tmp_path / "table.csv")
    with pytest.raises(DataFileError, match=r"'ann' is there twice.*--layout wide.*--layout long"):
        find_layout(table, 0)
    assert find_layout(table, 0, ("4", "9")) == "long"  # items that a model knows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("person,height,weight,age\nann,1,2,3\n", "id=person, item=height, value=weight; not read: age"),
        ("user,item\nann,tea\n", "id=user, item=item"),
        (
            "1 2 3 4\n",
            "id=column 0 (from 0), item=column 1 (from 0), value=column 2 (from 0); not read: column 3 (from 0)",
        ),
    ],
)
def test_how_columns_are_read_is_said(text, said, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    assert tell_long(TextTable(tmp_path / "table.csv"), 0) == f"read as a long table: {said}"


def test_columns_that_a_model_knows_make_a_table_wide(tmp_path):
    (tmp_path / "table.csv").write_text("id,item,b\nann,1,2\nann,2,3\n")
    table = TextTable(tmp_path / "table.csv")
    assert find_layout(table, 0) == "long"
    assert find_layout(table, 0, ("b", "item")) == "wide"
    assert find_layout(table, 0, ("b", "tea")) == "long"


def test_items_and_values_are_the_columns_beside_the_ids(tmp_path):
    (tmp_path / "table.csv").write_text("item,value,id,time\ntea,1,ann,5\n")
    assert long_positions(TextTable(tmp_path / "table.csv"), 2) == [2, 0, 1]


def test_only_layouts_that_there_are():
    with pytest.raises(ValueError, match="layout must be one of auto, wide, long, not 'Wide'"):
        check_layout("Wide")
