import io

import pytest

from corrvae.datasets.archives import Member
from corrvae.datasets.columns import RATINGS_CSV, RATINGS_DAT, THREE_NUMBERS, double_colons, read_integers
from corrvae.errors import DataFileError

HEADER = b"userId,movieId,rating,timestamp\n"


def read(path, layout, content, *wanted):
    return [column.tolist() for column in read_integers(path, Member("file", io.BytesIO(content)), layout, wanted)]


def test_each_layout(tmp_path):
    assert read(tmp_path, RATINGS_DAT, b"1::1193::5::97\n2::661::3.5::98\n", "userId", "movieId") == [
        [1, 2],
        [1193, 661],
    ]
    assert read(tmp_path, RATINGS_CSV, HEADER + b"7,3,3.5,9\r\n8,4,0.5,9\r\n", "movieId") == [[3, 4]]
    assert read(tmp_path, THREE_NUMBERS, b" 22605 42915 1\n 22605  5052 -1", "first", "value") == [[22605] * 2, [1, -1]]


def test_double_colons_are_found_across_reads(tmp_path, monkeypatch):
    monkeypatch.setattr("corrvae.graphs.files.lines.READ_BYTES", 3)
    assert read(tmp_path, RATINGS_DAT, b"10::20::3::4\n11::21::3::4\n", "userId", "movieId") == [[10, 11], [20, 21]]
    assert double_colons(b"1::2\n") == b"1,2\n"


@pytest.mark.parametrize(
    ("layout", "content"),
    [
        (RATINGS_DAT, b"1::2::3::4\n1::2\n"),
        (RATINGS_DAT, b"1::x::3::4\n"),
        (RATINGS_CSV, b"user,movie,rating,timestamp\n1,2,3,4\n"),
        (RATINGS_CSV, HEADER + b"1,,3,4\n"),
        (RATINGS_CSV, b""),
    ],
)
def test_files_that_are_not_as_published_are_refused(tmp_path, layout, content):
    with pytest.raises(DataFileError, match=r"file is not as published, lines of 'userId,movieId,rating,timestamp'"):
        read(tmp_path, layout, content, "userId", "movieId")


def test_a_file_without_rows_is_refused(tmp_path):
    with pytest.raises(DataFileError, match="file holds no rows"):
        read(tmp_path, RATINGS_CSV, HEADER, "userId")
