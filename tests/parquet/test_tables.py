import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corrvae
from corrvae.parquet import load_table, save_table

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


def test_all_columns_share_what_a_file_may_hold(tmp_path):
    """Each of fifty columns may well be there, and all of them may not."""
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), ["a" * 10_000])

    def table(count):
        written = pa.table({f"c{k}": one for k in range(count)})
        pq.write_table(written, tmp_path / "t.parquet", compression="zstd", store_schema=False, row_group_size=300)
        return (tmp_path / "t.parquet").read_bytes()

    assert load_table(table(1)).column(0)[999].as_py() == "a" * 10_000
    data = table(50)
    assert 512 * len(data) + (1 << 24) < 50 * 10_000_000
    with pytest.raises(ValueError, match=r"its strings take [\d,]+ bytes or more, too many for its size"):
        load_table(data)


def test_strings_within_other_values_are_not_read(tmp_path):
    """Each would be made anew for each row that has it."""
    nested = pa.ListArray.from_arrays(pa.array(range(101), pa.int32()), pa.array(["a" * 10_000] * 100))
    with pytest.raises(ValueError, match=r"its column 'id' holds list<.*strings within other values are not read"):
        load_table(written(pa.table({"id": nested}), tmp_path / "t.parquet", compression="zstd"))


def test_wide_values_are_counted_with_their_width(tmp_path):
    wide = pa.array([b"x" * 1000] * 50_000, pa.binary(1000))
    with pytest.raises(ValueError, match="claims 50,000,000 bytes"):
        load_table(written(pa.table({"a": wide}), tmp_path / "t.parquet", compression="zstd"))


def test_a_damaged_footer_ends_no_program(tmp_path):
    """Arrow ends the program if it is asked for a column whose histogram of levels has another length."""
    path = tmp_path / "t.parquet"
    whole = written(pa.table({"a": [1, None, 3]}), path)
    length = int.from_bytes(whole[-8:-4], "little")
    script = (
        "import sys; import pyarrow as pa; from corrvae.parquet import load_table\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "begin = len(data) - 8 - int(sys.argv[2])\n"
        "for place in range(begin, len(data)):\n"
        "    for bit in range(8):\n"
        "        changed = bytearray(data); changed[place] ^= 1 << bit\n"
        "        try: load_table(bytes(changed))\n"
        "        except (ValueError, OSError, pa.ArrowException): pass\n"
        "print('alive')"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(corrvae.__file__).parents[1])}
    command = [sys.executable, "-c", script, str(path), str(length)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", done.stderr[-2000:]
