import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.parquet.compact import BINARY, DOUBLE, I64, LIST, MAP, SET, STRUCT, CompactReader
from support.compact import varint, zigzag


@given(st.dictionaries(st.integers(1, 3000) | st.integers(1, 30), st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_come_back_with_the_numbers_of_their_fields(values):
    pairs, written, last = sorted(values.items()), b"", 0
    for number, value in pairs:
        step = number - last
        head = bytes([step << 4 | I64]) if step < 16 else bytes([I64]) + zigzag(number)
        written, last = written + head + zigzag(value), number
    reader = CompactReader(written + b"\0")
    assert [(number, kind, reader.integer()) for number, kind in reader.fields()] == [(n, I64, v) for n, v in pairs]
    assert reader.at == reader.n_read == len(written) + 1


@pytest.mark.parametrize(
    ("kind", "value", "looked_at"),
    [
        (BINARY, varint(300) + b"x" * 300, 2),
        (DOUBLE, b"x" * 8, 8),
        (LIST, bytes([0x25]) + zigzag(-1) + zigzag(500), 4),
        (LIST, bytes([0xF1, 20]) + b"\1" * 20, 22),
        (SET, bytes([0x1C, 0x15, 2, 0]), 4),
        (MAP, bytes([1, 0x85]) + varint(4) + b"four" + zigzag(7), 4),
        (MAP, b"\0", 1),
        (STRUCT, bytes([0x11, 0x12, 0x13, 9, 0]), 5),
    ],
)
def test_values_of_every_kind_are_passed_over(kind, value, looked_at):
    reader = CompactReader(value + b"more")
    reader.skip(kind)
    assert (reader.at, reader.n_read) == (len(value), looked_at)


@pytest.mark.parametrize("number", [0, -1, 2**15, 2**16 + 2])
def test_numbers_that_others_would_cut_are_refused(number):
    """Of 65,538, a reader that keeps sixteen bits reads a 2."""
    with pytest.raises(IndexError):
        next(CompactReader(bytes([I64]) + zigzag(number) + b"\0\0").fields())


@pytest.mark.parametrize("again", [1, 2])
def test_fields_out_of_order_or_twice_are_refused(again):
    fields = CompactReader(bytes([0x21, I64]) + zigzag(again) + b"\0\0").fields()
    assert next(fields) == (2, 1)
    with pytest.raises(IndexError):
        next(fields)
