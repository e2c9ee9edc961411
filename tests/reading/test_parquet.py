import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corrvae.errors import DataFileError
from corrvae.reading import parquet as parquet_module
from corrvae.reading import read_features
from support.tables import dense


def write(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_kinds_of_columns(tmp_path):
    path = write(
        tmp_path / "t.parquet",
        who=pa.array(["ann", "bob"]).dictionary_encode(),
        a=pa.array([1, None]),
        b=pa.array([True, False]),
        c=pa.array([0.5, 1.5], pa.float32()),
        d=pa.array([3, 4], pa.uint8()),
    )
    features = read_features(path)
    assert features.ids.tolist() == ["ann", "bob"]
    assert np.array_equal(dense(features), [[1, 1, 0.5, 3], [np.nan, 0, 1.5, 4]], equal_nan=True)
    wrapped = tmp_path / "t.parquet.gz"
    wrapped.write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(dense(read_features(wrapped)), dense(features), equal_nan=True)


def test_the_index_of_a_frame_holds_the_ids(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=pd.Index([5, 6], name="who"))
    frame.to_parquet(tmp_path / "named.parquet")
    frame.rename_axis(None).to_parquet(tmp_path / "unnamed.parquet")
    for name in ("named", "unnamed"):
        features = read_features(tmp_path / f"{name}.parquet")
        assert (features.ids.tolist(), features.names) == ([5, 6], ("a", "b"))
    frame.reset_index().to_parquet(tmp_path / "plain.parquet")
    assert read_features(tmp_path / "plain.parquet").ids.tolist() == [5, 6]


def test_long_tables_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_module, "_MOST_ROWS", 3)
    path = write(tmp_path / "t.parquet", who=[1, 1, 2, 3, 1], what=["x", "y", "x", "z", "z"], n=[1, 2, 3, 4, 5])
    features = read_features(path)
    assert (features.ids.tolist(), features.names) == ([1, 2, 3], ("x", "y", "z"))
    assert dense(features).tolist() == [[1, 2, 5], [3, 0, 0], [0, 0, 4]]


def test_faults_name_row_and_column(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_module, "_MOST_ROWS", 2)
    path = tmp_path / "t.parquet"
    for columns, problem in (
        ({"who": ["a", "b", None], "a": [1.0, 2.0, 3.0]}, "row 2 (from 0) has nothing in column 'who'"),
        (
            {"who": pa.array(["a", "b", None]).dictionary_encode(), "a": [1.0] * 3},
            "row 2 (from 0) has nothing in column 'who'",
        ),
        ({"who": ["a"], "a": ["x"], "b": [1], "c": [1], "d": [1]}, "column 'a' holds string; features are numbers"),
        ({"who": [0.5], "a": [1.0]}, "column 'who' holds double; ids and items are integers or strings"),
    ):
        with pytest.raises(DataFileError) as caught:
            read_features(write(path, **columns))
        assert caught.value.problem == problem


def test_a_string_in_every_row_is_made_once(tmp_path):
    """A file of a few hundred bytes: were each row's string made, it would take twenty gigabytes."""
    codes = pa.array(np.zeros(200_000, np.int32))
    table = pa.table({"id": pa.DictionaryArray.from_arrays(codes, ["a" * 100_000]), "x": np.ones(200_000)})
    pq.write_table(table, tmp_path / "x.parquet", compression="zstd", store_schema=False)
    with pytest.raises(DataFileError, match=r"row 1 .* which row 0"):
        read_features(tmp_path / "x.parquet", layout="wide")


def test_only_strings_that_occur_are_read_in_their_order(tmp_path):
    strings = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.int8()), ["a", "never", "b"])
    pq.write_table(pa.table({"id": strings, "item": strings, "v": [1.0, 2.0, 4.0]}), tmp_path / "x.parquet")
    with pytest.warns(UserWarning, match="repeat"):
        features = read_features(tmp_path / "x.parquet", layout="long")
    assert (features.ids.tolist(), features.names) == (["b", "a"], ("b", "a"))
    assert features.matrix.toarray().tolist() == [[5.0, 0.0], [0.0, 2.0]]


def test_numbers_that_repeat_without_end_are_refused(tmp_path):
    pq.write_table(pa.table({"id": np.zeros(10_000_000), "x": np.zeros(10_000_000)}), tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match="it claims 160,000,000 bytes"):
        read_features(tmp_path / "x.parquet")


@pytest.mark.parametrize("layout", ["auto", "wide", "long"])
def test_strings_that_are_no_text_are_refused(tmp_path, layout):
    ids = pa.StringArray.from_buffers(2, *pa.array([b"a\xff", b"b"]).buffers()[1:])
    path = write(tmp_path / "t.parquet", who=ids, what=pa.array([1, 2]), value=pa.array([1.0, 2.0]))
    with pytest.raises(DataFileError, match=r"t\.parquet: cannot be read as Parquet"):
        read_features(path, layout=layout)


def test_an_encoding_that_arrow_does_not_read_is_told(tmp_path):
    table = pa.table({"who": ["ann", "bob"], "what": ["tea", "tea"]})
    encoding = {"who": "DELTA_BYTE_ARRAY", "what": "PLAIN"}
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False, column_encoding=encoding)
    with pytest.raises(DataFileError, match=r"t\.parquet: cannot be read as Parquet \(Not yet implemented"):
        read_features(tmp_path / "t.parquet")


@pytest.mark.parametrize("said", [b"{", b"\xff", b"[1]", b'{"index_columns": 5}', b"[" * 100_000])
def test_what_pandas_did_not_write_of_an_index_is_passed_over(tmp_path, said):
    table = pa.table({"who": ["ann", "bob"], "a": [1.0, 2.0]}).replace_schema_metadata({b"pandas": said})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_features(tmp_path / "t.parquet", layout="wide").ids.tolist() == ["ann", "bob"]
