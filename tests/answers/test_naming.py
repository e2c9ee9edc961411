import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.answers.naming import find_known, find_known_pairs, read_ids, read_pairs, spell_like
from corrvae.errors import DataFileError
from corrvae.graphs.ids import id_array


@given(numbers=st.lists(st.integers(-(2**60), 2**60), min_size=1))
def test_integers_and_the_strings_that_spell_them_match(numbers):
    integers, strings = id_array(numbers, "ids"), id_array([str(number) for number in numbers], "ids")
    assert spell_like(strings, integers).tolist() == numbers
    assert spell_like(integers, strings).tolist() == strings.tolist()
    assert spell_like(integers, integers).tolist() == numbers


@pytest.mark.parametrize("odd", ["007", "+7", "7.0", " 7", "seven", "²", "--7", "-0"])
def test_what_does_not_spell_an_integer_stays_a_string(odd):
    assert spell_like([odd], np.array([7])).tolist() == [odd]


def test_unknown_ids_are_named_with_their_place():
    known = np.array(["ann", "bob"], dtype=object)
    with pytest.raises(
        ValueError, match=r"^id 'zed' is not among the 2 points of run, whose ids are like 'ann' \(line 1\)$"
    ):
        find_known(["ann", "zed"], known, "run", "line {}".format)
    with pytest.raises(ValueError, match=r"^5 ids are not among .* like 'ann': 'a', 'b', 'c', \.\.\.$"):
        find_known(list("abcde"), known, "run")


@pytest.mark.parametrize(
    "text", ["ann\nbob\n", "id\nann\nbob\n", "ID,age\nann,3\nbob,4\n", "\ufeffann\r\n\r\nbob", '"ann"\nbob']
)
def test_ids_come_one_in_a_line(text, tmp_path):
    path = tmp_path / "ids"
    path.write_bytes(text.encode())
    assert read_ids(str(path)) == ["ann", "bob"]


def test_ids_come_separated_by_commas():
    assert read_ids(" ann,bob ") == ["ann", "bob"]
    with pytest.raises(ValueError, match="no list of ids"):
        read_ids("ann,,bob")


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "no ids"), (b"id\n", "no ids"), (b"\xff\xfe\x00", "UTF-8"), (b"x" * 200_000, "list of ids")],
)
def test_a_file_without_ids_is_refused(data, words, tmp_path):
    path = tmp_path / "ids"
    path.write_bytes(data)
    with pytest.raises(DataFileError, match=words):
        read_ids(str(path))


def test_pairs_keep_order_direction_and_repeats(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("# made by hand\nfrom,to\n3,1\n1,3\n3,1\n2,2\n")
    pairs = read_pairs(path)
    assert pairs.ids.tolist() == [[3, 1], [1, 3], [3, 1], [2, 2]]
    assert pairs.place(1) == "line 4"


def test_pairs_come_from_parquet(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"]}).to_parquet(tmp_path / "pairs.parquet")
    assert read_pairs(tmp_path / "pairs.parquet").ids.tolist() == [["x", "y"], ["y", "z"]]


KNOWN = np.array(["ann", "bob", "cem"], dtype=object)


def test_a_first_line_that_alone_is_unknown_is_a_header(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("# ours\nhe,she\nbob,ann\nann,cem\n")
    with pytest.warns(
        UserWarning, match=r"^line 2 of the pairs is taken for a header: 'he' and 'she' are no ids of run$"
    ):
        found = find_known_pairs(read_pairs(path), KNOWN, "run")
    assert found.tolist() == [["bob", "ann"], ["ann", "cem"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("he,she\nbob,zed\n", r"^3 ids are .*\(line 1\)$"),
        ("he,she\nbob,he\n", r"^3 ids are .*\(line 1\)$"),
        ("ann,she\nbob,ann\n", r"^id 'she' is .*\(line 1\)$"),
        ("bob,ann\nhe,she\n", r"^2 ids are .*\(line 2\)$"),
        ("he,she\n", r"^2 ids are .*\(line 1\)$"),
        ("source,target\nhe,she\nbob,ann\n", r"^2 ids are .*\(line 2\)$"),
    ],
)
def test_other_unknown_ids_of_pairs_are_refused(text, words, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        find_known_pairs(read_pairs(path), KNOWN, "run")


def test_the_first_row_of_parquet_is_no_header(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": ["he", "bob"], "b": ["she", "ann"]}).to_parquet(tmp_path / "pairs.parquet")
    with pytest.raises(ValueError, match=r"^2 ids are .*\(row 0 \(from 0\)\)$"):
        find_known_pairs(read_pairs(tmp_path / "pairs.parquet"), KNOWN, "run")


def test_a_file_without_pairs_is_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataFileError, match="empty"):
        read_pairs(tmp_path / "empty.csv")
    with pytest.raises(DataFileError, match="no such file"):
        read_pairs(tmp_path / "nowhere.csv")
