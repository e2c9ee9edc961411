import gzip
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.errors import DataFileError, MissingDataFileError
from corrvae.reading import read_features
from support.tables import dense, read, refused

WIDE = "id,red,blue,green,size\nann,1,0,2.5,3\nbob,0,4,-1,2\n"
MATRIX = [[1, 0, 2.5, 3], [0, 4, -1, 2]]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", " "])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_text_of_any_kind_is_recognised_by_its_content(delimiter, compress, tmp_path):
    features = read(tmp_path, compress(WIDE.replace(",", delimiter).encode()), "table")
    assert features.ids.tolist() == ["ann", "bob"]
    assert features.names == ("red", "blue", "green", "size")
    assert dense(features).tolist() == MATRIX
    assert features.matrix.dtype == np.float32


@pytest.mark.parametrize(("head", "row"), [(b"id,a,b,c,d,e\n", b"0,0,0,0,0,0\n"), (b"id,item\n", b"ann,tea\n")])
def test_text_that_unpacks_to_far_more_is_refused(head, row, tmp_path):
    with pytest.raises(DataFileError, match=r"table\.gz: unpacks to more than [\d,]+ bytes, 200 times its size"):
        read(tmp_path, gzip.compress(head + row * 300_000), "table.gz")


def test_all_formats_give_the_same(tmp_path):
    frame = pd.DataFrame(MATRIX, index=["ann", "bob"], columns=["red", "blue", "green", "size"])
    frame.to_parquet(tmp_path / "table.parquet")
    np.savez(tmp_path / "table.npz", X=frame.to_numpy(), ids=np.array(["ann", "bob"]), names=np.array([*frame.columns]))
    (tmp_path / "table.csv").write_text(WIDE)
    (tmp_path / "long.csv").write_text(
        "who,what,amount\n" + "".join(f"{i},{n},{v}\n" for i, row in frame.iterrows() for n, v in row.items())
    )
    for name in ("table.parquet", "table.npz", "table.csv", "long.csv"):
        features = read_features(tmp_path / name)
        assert features.ids.tolist() == ["ann", "bob"]
        assert features.names == ("red", "blue", "green", "size")
        assert dense(features).tolist() == MATRIX


def test_a_model_asks_for_its_columns_in_its_order(tmp_path):
    np.savez(tmp_path / "table.npz", X=np.array([[1.0, 2.0]]), names=np.array(["red", "blue"]))
    assert dense(read_features(tmp_path / "table.npz", names=["blue", "red"])).tolist() == [[2, 1]]
    assert dense(read_features(tmp_path / "table.npz", names=["blue"])).tolist() == [[2]]
    with pytest.raises(DataFileError, match="there is no column 'pink' and 1 more, which the model was trained with"):
        read_features(tmp_path / "table.npz", names=["red", "pink", "teal"])
    np.save(tmp_path / "table.npy", np.ones((2, 3)))
    assert read_features(tmp_path / "table.npy", names=list("abc")).names == ("a", "b", "c")
    with pytest.raises(DataFileError, match="it has 3 columns, where the model was trained with 2"):
        read_features(tmp_path / "table.npy", names=list("ab"))


def test_what_is_no_file_of_features(tmp_path):
    with pytest.raises(MissingDataFileError):
        read_features(tmp_path / "nowhere.csv")
    with pytest.raises(DataFileError, match="this is a folder without shards; corrvae data shard makes some"):
        read_features(tmp_path)
    with pytest.raises(ValueError, match="layout must be one of auto, wide, long, not 'tall'"):
        read_features(tmp_path, layout="tall")
    assert refused(tmp_path, "") == "the file is empty"
    assert refused(tmp_path, "# nothing\n\n") == "the file is empty: it holds no line but blank ones and comments"
    assert re.match("cannot be read as Parquet", refused(tmp_path, b"PAR1 and no more"))
    assert refused(tmp_path, np_bytes(tmp_path), id_column="who").startswith("an array has no column 'who' of ids")


def np_bytes(folder):
    np.save(folder / "array.npy", np.ones((2, 2)))
    return (folder / "array.npy").read_bytes()


KEYS = st.sampled_from(["a", "b", "7", "07", "é", "x y"])
ENTRIES = st.lists(st.tuples(KEYS, KEYS, st.integers(1, 5)), min_size=1, max_size=30, unique_by=lambda row: row[:2])


@given(rows=ENTRIES)
def test_long_text_is_the_matrix_that_a_dictionary_gives(rows, tmp_path_factory):
    text = "who,item,value\n" + "".join(f"{i},{k},{v}\n" for i, k, v in rows)
    features = read(tmp_path_factory.mktemp("long"), text, layout="long")
    ids, items = list(dict.fromkeys(i for i, _, _ in rows)), list(dict.fromkeys(k for _, k, _ in rows))
    assert [str(value) for value in features.ids.tolist()] == ids
    assert list(features.names) == items
    expected = np.zeros((len(ids), len(items)))
    for i, k, v in rows:
        expected[ids.index(i), items.index(k)] = v
    assert np.array_equal(dense(features), expected)
    assert sparse.issparse(features.matrix)
