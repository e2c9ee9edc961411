from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.errors import DataFileError
from corrvae.parquet import load_table
from corrvae.parquet.footer import Chunk
from corrvae.parquet.pages import MOST_HEAD_BYTES, most_of_pages
from corrvae.parquet.tables import footer_of
from corrvae.reading import read_features
from support.compact import zigzag

N_ROWS = 20_000


def written(table, **options):
    sink = BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def of_pages(data):
    return most_of_pages(BytesIO(data), len(data), footer_of(BytesIO(data), len(data)).chunks)


def with_footer_claims(data, changes):
    """Let the footer claim other numbers; they are written as long as the ones that they replace."""
    length = int.from_bytes(data[-8:-4], "little")
    head, footer, tail = data[: -8 - length], data[-8 - length : -8], data[-8:]
    for old, new in changes.items():
        before, value, after = zigzag(old), 2 * new, bytearray()
        for _ in before[:-1]:
            after.append(value & 127 | 128)
            value >>= 7
        footer = footer.replace(before, bytes([*after, value]))
    return head + footer + tail


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("sizes", [{}, {"row_group_size": 7000, "data_page_size": 4096}])
def test_pages_of_plain_numbers_claim_these_numbers(compression, version, sizes):
    schema = pa.schema([pa.field("a", pa.float64(), nullable=False), pa.field("b", pa.int32(), nullable=False)])
    table = pa.table({"a": np.arange(N_ROWS, dtype=float), "b": np.arange(N_ROWS, dtype=np.int32)}, schema=schema)
    data = written(table, compression=compression, data_page_version=version, use_dictionary=False, **sizes)
    chunks = footer_of(BytesIO(data), len(data)).chunks
    assert of_pages(data) == 16 * N_ROWS  # decoded, a small integer counts as a large one
    assert most_of_pages(BytesIO(data), len(data), [c for c in chunks if c.width == 8][:1]) == 8 * chunks[0].n_values


def test_dictionaries_count_beside_their_codes():
    table = pa.table({"a": pa.array(np.arange(N_ROWS) % 10)})
    assert of_pages(written(table, compression="none")) == 8 * (N_ROWS + 10)


@pytest.mark.parametrize("options", [{}, {"compression": "zstd", "use_dictionary": False, "data_page_size": 1000}])
def test_strings_and_lists_and_long_statistics_are_walked_to_their_end(options):
    words = [f"{k:05d}" + "x" * 3000 for k in range(200)]
    table = pa.table({"s": words, "l": [[1.0, 2.0], None] * 100, "n": pa.array([None] * 200, pa.float64())})
    data = written(table, write_page_index=True, **options)
    chunks = footer_of(BytesIO(data), len(data)).chunks
    assert of_pages(data) <= sum(chunk.page_bytes for chunk in chunks)
    assert of_pages(data) > sum(map(len, words))


def test_pages_that_hold_more_than_the_footer_claims_are_refused(tmp_path):
    """Arrow would take a gigabyte for these: each page is unpacked as its own head says."""
    schema = pa.schema([pa.field("a", pa.float64(), nullable=False)])
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    large = 130_000_000
    data = written(pa.table({"a": np.zeros(large // 8)}, schema=schema), data_page_size=1 << 24, **options)
    about = pq.read_metadata(BytesIO(data)).row_group(0).column(0)
    lying = with_footer_claims(data, {about.total_uncompressed_size: 1000})
    assert footer_of(BytesIO(lying), len(lying)).chunks[0].page_bytes < 2000
    path = tmp_path / "t.parquet"
    path.write_bytes(lying)
    with pytest.raises(ValueError, match=r"it claims 1\d\d,\d{3},\d{3} bytes of values"):
        load_table(lying)
    with pytest.raises(DataFileError, match=r"t\.parquet: .*it claims 1\d\d,\d{3},\d{3} bytes of values"):
        read_features(path)


def head(*, kind=0, unpacked=0, packed=0, count=0, field=5):
    inner = bytes([0x15]) + zigzag(count) + b"\0"
    step = field - 3
    return (
        b"".join([bytes([0x15]) + zigzag(v) for v in (kind, unpacked, packed)])
        + bytes([step << 4 | 12])
        + inner
        + b"\0"
    )


def test_what_a_page_claims_and_does_not_hold_is_counted():
    """A dictionary of a billion numbers, in a file that has none of them."""
    data = b"PAR1" + head(kind=2, count=10**9, field=7) + head(unpacked=8, packed=8, count=1) + bytes(8)
    assert most_of_pages(BytesIO(data), len(data), [Chunk(4, len(data) - 4, 1, 8, 8)]) == 8 * (10**9 + 1)


def test_pages_of_many_columns_may_be_the_same_ones():
    data = b"PAR1" + head(unpacked=10**6, packed=4, count=1) + bytes(4)
    chunks = [Chunk(4, len(data) - 4, 1, 8, 8)] * 50
    assert most_of_pages(BytesIO(data), len(data), chunks) == 50 * 10**6


def test_heads_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("corrvae.parquet.pages.MOST_HEAD_BYTES", 10_000)
    data = b"PAR1" + head() * 2000
    with pytest.raises(ValueError, match="the heads of its pages have more than 10,000 bytes; write larger pages"):
        most_of_pages(BytesIO(data), len(data), [Chunk(4, len(data), 1, 8, 8)])
    assert MOST_HEAD_BYTES > 10_000


@given(st.binary(max_size=100), st.integers(0, 120), st.integers(0, 120), st.integers(0, 10))
def test_any_bytes_are_walked_or_refused(data, begin, n_bytes, n_values):
    try:
        assert most_of_pages(BytesIO(data), len(data), [Chunk(begin, n_bytes, n_values, 0, 8)]) >= 0
    except ValueError as error:
        assert "the head of a page, at byte " in str(error)  # noqa: PT017
