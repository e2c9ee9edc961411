import io

from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import blanks
from corrvae.graphs.blanks import SingleBlanks, single_blanks

LINES = st.text(alphabet="ab \t\r\v\n", max_size=80).map(str.encode)


def literal(lines):
    return b"\n".join(b" ".join(line.split()) for line in lines.split(b"\n"))


@given(LINES)
def test_as_splitting_and_joining_every_line(lines):
    assert single_blanks(lines) == literal(lines)


@given(LINES, st.integers(1, 7))
def test_a_stream_read_in_small_parts_is_the_same(lines, size):
    original, blanks.READ_BYTES = blanks.READ_BYTES, size
    try:
        assert io.BufferedReader(SingleBlanks(io.BytesIO(lines)), 5).read() == literal(lines)
    finally:
        blanks.READ_BYTES = original
