import _thread
import gzip
import time
import warnings
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from corrvae.errors import DataFileError, FolderError
from corrvae.reading import read_features, shard_tables
from corrvae.shards import sorting
from corrvae.shards.sorting import Spool

ROWS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("tuvwx"), st.integers(-2, 3)), min_size=1)


def content(features):
    """Give ids, names and entries, in order, as they are stored."""
    matrix = features.matrix
    if not isinstance(matrix, sparse.csr_array):
        blocks = [piece for _, piece in matrix.pieces()]
        matrix = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    parts = matrix.indptr, matrix.indices, matrix.data
    return features.ids.tolist(), features.names, *(part.tolist() for part in parts)


def write(path, rows):
    path.write_text("who,item,value\n" + "".join(f"{who},{item},{value / 3}\n" for who, item, value in rows))
    return path


@settings(max_examples=15)
@given(ROWS, st.lists(st.integers(0, 99), max_size=3), st.sampled_from([1 << 20, 3]))
def test_shards_are_what_the_reader_of_one_file_reads(tmp_path_factory, rows, cuts, size):
    folder = tmp_path_factory.mktemp("x")
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    parts = [rows[begin:end] for begin, end in pairwise(bounds)]
    files = [write(folder / f"{number}.csv", part) for number, part in enumerate(parts)]
    with warnings.catch_warnings(record=True), patch.multiple(sorting, _BIN_ENTRIES=size, _BLOCK=size + 1, _FILES=2):
        warnings.simplefilter("always")
        expected = read_features(write(folder / "all.csv", rows), layout="long")
        made = shard_tables(files, folder / "shards", layout="long", most_rows=3)
    found = read_features(folder / "shards")
    assert content(found) == content(expected)
    assert (made.n_rows, made.n_columns, made.n_entries) == (*expected.matrix.shape, expected.matrix.nnz)
    assert made.n_shards == -(-made.n_rows // 3)
    assert {path.name for path in folder.iterdir()} == {"all.csv", "shards", *(file.name for file in files)}


def test_files_of_every_kind_and_folders_of_them(tmp_path):
    rows = [("ann", "tea", 1.5), ("bob", "tea", 2.0), ("ann", "milk", 3.0), ("cem", "rum", 4.0)]
    text = "who,item,value\n" + "".join(f"{who},{item},{value}\n" for who, item, value in rows)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, part in enumerate((rows[:2], rows[2:])):
        columns = dict(zip(("who", "item", "value"), map(list, zip(*part, strict=True)), strict=True))
        pq.write_table(pa.table(columns), parts / f"part-{number}.parquet")
    (parts / "_SUCCESS").touch()
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.tsv").write_text(text.replace(",", "\t"))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    expected = content(read_features(tmp_path / "a.csv"))
    for name in ("a.csv", "a.tsv", "a.csv.gz", "parts"):
        shard_tables([tmp_path / name], tmp_path / "shards", overwrite=True)
        assert content(read_features(tmp_path / "shards")) == expected


def test_repeats_are_told_as_the_reader_tells_them(tmp_path):
    path = write(tmp_path / "a.csv", [("ann", "tea", 3), ("bob", "tea", 3), ("ann", "tea", 3)])
    with pytest.warns(UserWarning, match="1 row repeats an id and item; values of the same two are added up"):
        shard_tables([path], tmp_path / "shards")
    path.write_text("who,item\nann,tea\nann,tea\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shard_tables([path], tmp_path / "shards", overwrite=True)
    assert read_features(tmp_path / "shards").matrix.pick(np.array([0])).values.tolist() == [2.0]


def test_what_is_refused_leaves_nothing(tmp_path):
    def refused(files, kind, words, **options):
        with pytest.raises(kind, match=words):
            shard_tables(files, tmp_path / "shards", **options)
        assert not any("shards" in path.name for path in tmp_path.iterdir())

    long, wide, others = (tmp_path / f"{name}.csv" for name in ("long", "wide", "others"))
    write(long, [("ann", "tea", 3)])
    wide.write_text("who,a,b,c,d,e\nann,1,2,3,4,5\n")
    others.write_text("who,item\nann,tea\n")
    (tmp_path / "empty").mkdir()
    refused([wide], DataFileError, "it looks like a wide table")
    refused([long, others], DataFileError, "others.csv: its columns are .*; those of")
    refused([tmp_path / "empty"], DataFileError, "there are no files in this folder")
    refused([tmp_path / "nowhere.csv"], DataFileError, "there is no such file")
    refused([], ValueError, "no tables")
    refused([long], ValueError, "layout must be auto or long", layout="wide")
    refused([long], ValueError, "a shard has a row", most_rows=0)
    long.write_text("who,item,value\nann,tea,1\nann,milk,much\n")
    refused([long], DataFileError, "line 3 has 'much'")
    np.save(tmp_path / "x.npy", np.eye(2))
    refused([tmp_path / "x.npy"], DataFileError, "this is an array")


def test_what_is_there_stays_unless_it_may_go(tmp_path):
    first, second = (write(tmp_path / name, [(name, "tea", 3)]) for name in ("a.csv", "b.csv"))
    shard_tables([first], tmp_path / "shards")
    with pytest.raises(FolderError, match="holds shards already; --overwrite replaces them"):
        shard_tables([second], tmp_path / "shards")
    assert read_features(tmp_path / "shards").ids.tolist() == ["a.csv"]
    shard_tables([second], tmp_path / "shards", overwrite=True)
    assert read_features(tmp_path / "shards").ids.tolist() == ["b.csv"]
    with pytest.raises(FolderError, match="there is something else of this name"):
        shard_tables([first], tmp_path, overwrite=True)


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    path = write(tmp_path / "a.csv", [("ann", "tea", 3)])

    def interrupt(self, *_):
        _thread.interrupt_main()
        time.sleep(0.3)

    with patch.object(Spool, "append", interrupt), pytest.raises(KeyboardInterrupt):
        shard_tables([path], tmp_path / "shards")
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
