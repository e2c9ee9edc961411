import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.parquet.footer import MOST_FOOTER_BYTES, footer_length, read_footer
from corrvae.parquet.tables import footer_of
from corrvae.reading import read_features
from support.compact import zigzag


def tables():
    lists = pa.array([[1.0, 2.0]] * 50, pa.list_(pa.float32(), 2))
    yield pa.table({"a": range(50), "b": ["x"] * 50, "c": lists, "d": pa.array([b"123"] * 50, pa.binary(3))})
    yield pa.table({"wide": pa.array([b"y" * 100] * 50, pa.binary(100))})
    yield pa.table({"nested": [{"a": [1, 2], "b": {"c": "x"}}] * 50, "flag": [True] * 50})
    yield pa.table({"none": pa.array([], pa.int64())})


@pytest.mark.parametrize("table", [*tables()], ids=lambda table: table.column_names[0])
@pytest.mark.parametrize("options", [{}, {"compression": "zstd", "row_group_size": 20, "write_page_index": True}])
def test_claims_are_those_that_arrow_reads(tmp_path, table, options):
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, **options)
    about = pq.read_metadata(path)
    with path.open("rb") as stream:
        found = footer_of(stream, path.stat().st_size)
    chunks = [
        (column, about.row_group(group).column(column))
        for group in range(about.num_row_groups)
        for column in range(about.num_columns)
    ]
    assert found.n_rows == about.num_rows
    widths = [max(8, about.schema.column(column).length) for column in range(about.num_columns)]
    for mine, (column, theirs) in zip(found.chunks, chunks, strict=True):
        if theirs.num_values:
            begins = [place for place in (theirs.dictionary_page_offset, theirs.data_page_offset) if place]
            assert (mine.begin, mine.n_bytes) == (min(begins), theirs.total_compressed_size)
        assert (mine.n_values, mine.page_bytes) == (theirs.num_values, theirs.total_uncompressed_size)
        assert mine.value_bytes == widths[column] * theirs.num_values
    values, pages = (sum(getattr(c, name) for c in found.chunks) for name in ("value_bytes", "page_bytes"))
    assert found.most == max(8 * found.n_rows, values, pages)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(footer):
    try:
        assert read_footer(footer).most >= 0
    except ValueError as error:
        assert str(error) == "its footer is damaged"  # noqa: PT017


@pytest.mark.parametrize(
    "footer", [bytes([0x19, 0xFC]) + b"\xff" * 9 + b"\x01", b"\x1c" * 10**6, b"\x15" + b"\xff" * 20]
)
def test_lists_without_end_and_depth_without_end_are_refused(footer):
    with pytest.raises(ValueError, match="its footer is damaged"):
        read_footer(footer)


def test_the_end_of_a_file_tells_where_its_footer_is(tmp_path):
    pq.write_table(pa.table({"a": np.arange(3)}), tmp_path / "t.parquet")
    data = (tmp_path / "t.parquet").read_bytes()
    length = footer_length(data[-8:], len(data))
    assert 0 < length < len(data) - 12
    for tail, size in [(b"PAR1", 4), (data[-8:-1] + b"X", len(data)), (data[-8:], length), (b"\xff" * 4 + b"PAR1", 99)]:
        with pytest.raises(ValueError, match="does not end"):
            footer_length(tail, size)


def test_a_footer_that_would_take_long_to_read_is_refused_unread(tmp_path):
    path = tmp_path / "t.parquet"
    with path.open("wb") as stream:
        stream.write(b"PAR1")
        stream.seek(MOST_FOOTER_BYTES + 5)  # takes no room on the disk
        stream.write((MOST_FOOTER_BYTES + 1).to_bytes(4, "little") + b"PAR1")
    for read in (read_features, CorrelationGraph.from_file):
        with pytest.raises(DataFileError, match=r"t\.parquet: .*its footer has 33,554,433 bytes, more than 33,554,432"):
            read(path)


def footer(fields):
    """Write fields with their numbers in full, as a footer may have them in any order."""
    return b"".join(bytes([kind]) + zigzag(number) + body for number, kind, body in fields) + b"\0"


def test_fields_out_of_order_or_twice_are_refused():
    schema = (2, 9, b"\x1c" + footer([(1, 5, zigzag(7)), (2, 5, zigzag(1000))]))  # values of 1,000 bytes
    column = footer([(5, 6, zigzag(600)), (6, 6, zigzag(10))])  # 600 of them, in 10 bytes
    groups = (4, 9, b"\x1c" + footer([(1, 9, b"\x1c" + footer([(3, 12, column)]))]))
    rows = (3, 6, zigzag(600))
    assert read_footer(footer([schema, rows, groups])).most == 600_000
    for fields in ([groups, schema, rows], [schema, groups, schema], [schema, rows, rows, groups]):
        with pytest.raises(ValueError, match="its footer is damaged"):
            read_footer(footer(fields))
