import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs.files import lines as lines_module
from corrvae.graphs.files.lines import LongLineError, TidyLines, is_comment, single_blanks, without_comments

LINES = st.text(alphabet="ab \t\r\v\n", max_size=80).map(str.encode)


def literal(lines):
    return b"\n".join(b" ".join(line.split()) for line in lines.split(b"\n"))


@given(LINES)
def test_as_splitting_and_joining_every_line(lines):
    assert single_blanks(lines) == literal(lines)


@given(LINES, st.integers(1, 7))
def test_a_stream_read_in_small_parts_is_the_same(lines, size):
    original, lines_module.READ_BYTES = lines_module.READ_BYTES, size
    try:
        assert io.BufferedReader(TidyLines(io.BytesIO(lines), single_blanks), 5).read() == literal(lines)
    finally:
        lines_module.READ_BYTES = original


def test_a_line_without_end_is_refused_before_it_fills_memory():
    class Endless(io.RawIOBase):
        given = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            buffer[:] = b"a" * len(buffer)
            self.given += len(buffer)
            return len(buffer)

    endless = Endless()
    with pytest.raises(LongLineError, match="longer than 8,388,608 bytes"):
        TidyLines(io.BufferedReader(endless), single_blanks).read()
    assert endless.given < 2**24


@given(st.text(alphabet="a#% \t\r\n", max_size=80))
def test_comments_are_the_lines_whose_first_mark_is_a_sign(text):
    kept = [line for line in text.split("\n") if not line.strip().startswith(("#", "%"))]
    assert without_comments(text.encode()).decode().split("\n")[: len(kept)] == kept
    assert [line for line in text.split("\n") if not is_comment(line)] == kept
