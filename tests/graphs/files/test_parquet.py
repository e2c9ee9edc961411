import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from support.files import WORDS, fails


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint16(), pa.uint64()])
def test_parquet_integers(tmp_path, kind):
    path = tmp_path / "edges"
    table = pa.table({"w": [0.5, 2.0], "a": pa.array([5, 3], kind), "b": pa.array([3, 9], kind)})
    pq.write_table(table, path)
    graph = CorrelationGraph.from_file(path, columns=("a", "b"), conductance="w")
    assert graph == CorrelationGraph.from_edges([(5, 3), (3, 9)], conductances=[0.5, 2.0])
    assert CorrelationGraph.from_file(path, columns=(1, 2), id_kind="string").ids.tolist() == ["3", "5", "9"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_strings_also_in_gzip(tmp_path, kind):
    path, packed = tmp_path / "edges.parquet", tmp_path / "edges.parquet.gz"
    columns = np.array(WORDS.id_pairs.tolist()).T.tolist()
    arrays = [pa.array(column).cast(kind) for column in columns]
    pq.write_table(pa.table({"a": arrays[0], "b": arrays[1]}), path, row_group_size=2)
    assert CorrelationGraph.from_file(path) == WORDS
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert CorrelationGraph.from_file(packed) == WORDS


def test_parquet_without_rows(tmp_path):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.null()), "b": pa.array([], pa.null())}), path)
    assert CorrelationGraph.from_file(path, vertices=["a", "b"]) == CorrelationGraph.from_edges([], vertices=["a", "b"])


def test_wrong_parquet_is_refused_with_its_place(tmp_path):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": [2, None], "c": [1.5, 2.5], "d": ["x", "y"]}), path)
    fails(path, "row 1 (from 0) has no value in column 'b'")
    fails(path, "column 'c' holds double; ids are integers or strings", columns=("a", "c"))
    fails(path, "column 'd' holds string; ids are integers", columns=("a", "d"), id_kind="integer")
    fails(path, "there is no column named 'z'; there are 'a', 'b', 'c', 'd'", columns=("a", "z"))
    fails(path, "there is no column at position 4; positions are 0 to 3", columns=(0, 4))
    pq.write_table(pa.table({"a": [1]}), path)
    fails(path, "a file of edges has two columns of ids; this one has ['a']")
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataFileError, match="cannot be read as Parquet"):
        CorrelationGraph.from_file(path)
    pq.write_table(pa.table({"a": [1, 2], "b": [2, 3], "w": [1.0, -1.0], "s": ["x", "y"]}), path)
    fails(path, "row 1 (from 0): (2, 3) has conductance -1.0; it must be finite and positive", conductance="w")
    fails(path, "column 's' holds string; conductances are numbers", conductance="s")
    fails(path, "row 1 (from 0): id 3 is not among the 2 vertices", vertices=[1, 2])
    pq.write_table(pa.table({"a": pa.array([2**64 - 1], pa.uint64()), "b": pa.array([1], pa.uint64())}), path)
    with pytest.raises(DataFileError, match="ids must fit in 64 bits"):
        CorrelationGraph.from_file(path)


def test_parquet_that_unfolds_to_far_more_is_refused(tmp_path):
    path, packed = tmp_path / "edges.parquet", tmp_path / "edges.parquet.gz"
    codes = pa.array(np.zeros(200_000, np.int32))
    column = pa.DictionaryArray.from_arrays(codes, ["a" * 100_000])
    pq.write_table(pa.table({"a": column, "b": column}), path, compression="zstd", store_schema=False)
    with pytest.raises(DataFileError, match="its strings take 20,000,000,000 bytes"):
        CorrelationGraph.from_file(path)
    pq.write_table(pa.table({"a": np.zeros(10_000_000), "b": np.zeros(10_000_000)}), path, compression="zstd")
    with pytest.raises(DataFileError, match="it claims 160,000,000 bytes"):
        CorrelationGraph.from_file(path)
    packed.write_bytes(gzip.compress(b"PAR1" + bytes(100_000_000)))
    with pytest.raises(DataFileError, match=r"unpacks to more than [\d,]+ bytes"):
        CorrelationGraph.from_file(packed)


def test_strings_that_are_no_text_are_refused(tmp_path):
    ids = pa.StringArray.from_buffers(2, *pa.array([b"a\xff", b"b"]).buffers()[1:])
    pq.write_table(pa.table({"a": ids, "b": ["x", "y"]}), tmp_path / "edges")
    with pytest.raises(DataFileError, match=r"edges: column 'a' is damaged \(.*UTF8"):
        CorrelationGraph.from_file(tmp_path / "edges")
