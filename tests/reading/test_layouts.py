import pytest

from corrvae.reading.layouts import check_layout, find_layout, long_positions
from corrvae.reading.text import TextTable


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("id,a\nann,1\nbob,2\n", "wide"),
        ("id,a\nann,1\nann,2\n", "long"),  # an id is there twice
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
