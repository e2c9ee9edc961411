import pytest

from corrvae.errors import DataFileError
from corrvae.reading.text import TextTable


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_text("id,a,who\n1,2,ann\n3,4,bob\n")
    return TextTable(tmp_path / "table.csv")


def test_ids_are_in_the_first_or_the_named_column(table):
    assert table.id_position(None) == 0
    assert table.id_position("who") == 2
    with pytest.raises(DataFileError, match="there is no column named 'name'; there are 'id', 'a', 'who'"):
        table.id_position("name")


def test_columns_are_named_in_sentences(table, tmp_path):
    assert table.name_of(2) == "column 'who'"
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n")
    assert TextTable(tmp_path / "bare.csv").name_of(1) == "column 1 (from 0)"
