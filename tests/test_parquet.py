import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.parquet import load_table, refuse_bomb, save_table

KINDS = (
    st.lists(st.none() | st.text(), min_size=1, max_size=20),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    st.lists(st.binary(), min_size=1, max_size=20),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=20),
)


def written(table, path, **options):
    pq.write_table(table, path, **options)
    return path.read_bytes()


@given(st.one_of(KINDS))
def test_what_is_written_is_read(tmp_path_factory, values):
    table = pa.table({"a": values, "b": pa.array([[1.0, 2.0]] * len(values), pa.list_(pa.float32(), 2))})
    path = tmp_path_factory.mktemp("any") / "t.parquet"
    save_table(path, table)
    assert load_table(path.read_bytes()).equals(table)


def test_a_table_that_compresses_too_well_is_written_plainly(tmp_path):
    """A model whose rows are all alike must come back too."""
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(8_000_000, np.float32)), 100)
    save_table(tmp_path / "t.parquet", pa.table({"mean": values}))
    assert (tmp_path / "t.parquet").stat().st_size > 30_000_000
    assert load_table((tmp_path / "t.parquet").read_bytes())["mean"].combine_chunks().flatten().to_numpy().sum() == 0


def test_numbers_that_repeat_without_end_are_refused(tmp_path):
    data = written(pa.table({"a": np.zeros(20_000_000)}), tmp_path / "t.parquet", compression="zstd")
    assert len(data) < 200_000
    with pytest.raises(ValueError, match=r"it claims 160,000,000 bytes of values in [\d,]+ bytes"):
        load_table(data)


def test_a_long_string_in_every_row_is_refused(tmp_path):
    """Of the kind that turns a few hundred bytes into twenty gigabytes."""
    codes = pa.array(np.zeros(200_000, np.int32))
    table = pa.table({"id": pa.DictionaryArray.from_arrays(codes, ["a" * 100_000])})
    data = written(table, tmp_path / "t.parquet", compression="zstd", store_schema=False)
    assert len(data) < 1000
    with pytest.raises(ValueError, match="its strings take 20,000,000,000 bytes"):
        load_table(data)


def test_wide_values_are_counted_with_their_width(tmp_path):
    wide = pa.array([b"x" * 1000] * 50_000, pa.binary(1000))
    with pytest.raises(ValueError, match="claims 50,000,000 bytes"):
        load_table(written(pa.table({"a": wide}), tmp_path / "t.parquet", compression="zstd"))


def test_a_claim_is_weighed_against_the_size(tmp_path):
    written(pa.table({"a": np.arange(4_000_000)}), tmp_path / "t.parquet", compression="none", use_dictionary=False)
    claims = pq.read_metadata(tmp_path / "t.parquet")
    refuse_bomb(claims, 32_000_000)
    with pytest.raises(ValueError, match="claims"):
        refuse_bomb(claims, 10)
