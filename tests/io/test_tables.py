import gzip
import logging

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.errors import DataFileError
from corrvae.io import columns as columns_module
from corrvae.io import read_features
from corrvae.io.columns import as_ids
from corrvae.io.layouts import open_table
from support.annotated import write_annotated
from support.tables import dense, read, rejected

WIDE = "id,red,blue,green,size\nann,1,0,2.5,3\nbob,0,4,-1,2\n"
NAMES = ["red", "blue", "green", "size"]
MATRIX = [[1, 0, 2.5, 3], [0, 4, -1, 2]]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", " ", "  \t"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_text_is_recognised_by_its_content(delimiter, compress, tmp_path):
    features = read(tmp_path, compress(WIDE.replace(",", delimiter).encode()), "table")
    assert (features.ids.tolist(), features.names) == (["ann", "bob"], NAMES)
    assert dense(features).tolist() == MATRIX
    assert features.matrix.dtype == np.float32


def test_all_formats_give_the_same(tmp_path):
    frame = pd.DataFrame(MATRIX, index=["ann", "bob"], columns=NAMES)
    frame.to_parquet(tmp_path / "table.parquet")
    np.savez(tmp_path / "table.npz", X=frame.to_numpy(), ids=np.array(["ann", "bob"]), names=np.array(NAMES))
    write_annotated(tmp_path / "table.h5ad", frame.to_numpy(), ["ann", "bob"], NAMES)
    (tmp_path / "table.csv").write_text(WIDE)
    rows = "".join(f"{i},{n},{v}\n" for i, row in frame.iterrows() for n, v in row.items())
    (tmp_path / "long.csv").write_text("who,what,amount\n" + rows)
    for name in ("table.parquet", "table.npz", "table.h5ad", "table.csv", "long.csv"):
        features = read_features(tmp_path / name)
        assert (features.ids.tolist(), features.names) == (["ann", "bob"], NAMES)
        assert dense(features).tolist() == MATRIX
        assert (features.n_rows, features.n_columns) == (2, 4)


def test_what_is_no_file_of_features(tmp_path):
    with pytest.raises(DataFileError, match=r"nowhere\.csv: there is no such file"):
        read_features(tmp_path / "nowhere.csv")
    with pytest.raises(DataFileError, match=r"there is no data\.npy, so this is no folder of mapped features"):
        read_features(tmp_path)
    assert rejected(tmp_path, "") == (None, "the file is empty")
    assert rejected(tmp_path, "# nothing\n\n") == (
        None,
        "the file is empty: it has no line but blank ones and comments",
    )
    assert rejected(tmp_path, b"PAR1 and no more")[1].startswith("cannot be read as Parquet")


# Ids


@given(st.lists(st.integers(-(10**17), 10**17)))
def test_integers_come_back(values):
    ids = as_ids([str(value) for value in values])
    assert (ids.dtype, ids.tolist()) == (np.int64, values)


def test_what_python_would_write_otherwise_stays_a_string():
    for odd in ("007", "-0", "+1", "1.0", " 1", "", "9" * 30):
        ids = as_ids(["1", odd])
        assert (ids.dtype, ids.tolist()) == (object, ["1", odd])


def test_ids_may_be_in_any_named_column(tmp_path):
    features = read(tmp_path, "a,who,b,c,d\n1,7,2,3,4\n5,9,6,7,8\n", id_column="who")
    assert (features.ids.tolist(), features.names) == ([7, 9], ["a", "b", "c", "d"])
    assert dense(features).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert rejected(tmp_path, WIDE, id_column="x")[1].startswith("there is no column named 'x'; there are 'id', 'red'")


@pytest.mark.parametrize("gap", [",", "  "])
def test_an_id_may_begin_as_a_comment_does(gap, tmp_path):
    rows = ["id,a,b,c,d", "#1,1,2,3,4", "%2,5,6,7,8", "ann,9,9,9,9"]
    features = read(tmp_path, "# of a table\n" + "".join(row.replace(",", gap) + "\n" for row in rows))
    assert (features.ids.tolist(), features.names) == (["#1", "%2", "ann"], ["a", "b", "c", "d"])
    assert dense(features).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]]


def test_headers(tmp_path):
    features = read(tmp_path, "ID,0,1,2,3\nann,5,6,7,8\n")
    assert (features.names, features.ids.tolist()) == (["0", "1", "2", "3"], ["ann"])
    assert read(tmp_path, "9,0,1,2,3\n8,5,6,7,8\n").names is None
    assert read(tmp_path, ",a,b,c,d\n3,5,6,7,8\n").ids.tolist() == [3]  # the index of a data frame
    features = read(tmp_path, "\ufeffid , a, b , c, d\n ann , 1, 2 ,3, 4\n")
    assert (features.ids.tolist(), features.names) == (["ann"], ["a", "b", "c", "d"])
    features = read(tmp_path, "who,a,b,c,d\nann,NA,2,3,4\n", missing="mask")
    assert features.names == ["a", "b", "c", "d"]


# Wide tables


def test_empty_cells(tmp_path):
    text = "id,a,b,c,d\nann,1,,NA,3\nbob,nan,4, ,null\n"
    assert rejected(tmp_path, text) == (
        2,
        "column 'b' is empty; fill it, or choose missing=\"mask\", which leaves empty cells out of training",
    )
    nan = np.nan
    found = dense(read(tmp_path, text, missing="mask"))
    assert np.array_equal(found, [[1, nan, nan, 3], [nan, 4, nan, nan]], equal_nan=True)


def test_tables_of_mostly_zeros_become_sparse(tmp_path):
    rows = np.eye(30, 10)
    text = "id," + ",".join(f"f{k}" for k in range(10)) + "\n"
    text += "".join(f"{i}," + ",".join(f"{v:g}" for v in row) + "\n" for i, row in enumerate(rows))
    features = read(tmp_path, text)
    assert isinstance(features.matrix, sparse.csr_array)
    assert np.array_equal(dense(features), rows)
    holes = read(tmp_path, text.replace("\n4,0,", "\n4,,"), missing="mask")
    assert np.argwhere(np.isnan(dense(holes))).tolist() == [[4, 0]]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("id,a,b,c,d\nann,1,2,3,x\n", 2, "column 'd': invalid value 'x'"),
        ('id,a,b,c,d\nann,1,2,"3,5",1\n', 2, "column 'c': invalid value '3,5'"),
        ("# why\nid,a,b,c,d\nann,1,2,3,4\nbob,1\n", 4, "Expected 5 columns, got 2: bob,1"),
        ("id,a,b,c,d\nann,1,2,3,4\n# why\n", 3, "Expected 5 columns, got 1: # why"),
        ('id,a,b,c,d\n"ann\nbob",1,2,3,4\n ,1,1,1,1\n', 4, "column 'id' is empty, where an id is needed"),
        ("1,2,3,4,5\n2,2,3,4,y\n", 2, "column 4 (from 0): invalid value 'y'"),
        ("id,a,b,c,a\nann,1,2,3,4\n", None, "there is more than one column named 'a'"),
        ("id,a,b,c,d\n", None, "there are no rows in it"),
        (
            "id,a,b,c,d\nann,1,2,3,1e39\n",
            2,
            "column 'd' holds a number that is infinite or too large for 32 bits; rescale the features",
        ),
        (
            "a,b,c,d,e\n0.5,1,2,3,1\n",
            None,
            "column 'a' should hold the ids, but holds numbers such as 0.5; choose another id_column, or put a "
            "column of ids first",
        ),
        (
            "id,a,b,c,d\nx,1,1,1,1\ny,1,1,1,1\nx,1,1,1,1\n",
            4,
            "the id 'x' is there twice; a table with a row for each id and item needs layout=\"long\"",
        ),
    ],
)
def test_errors_name_line_and_column(content, line, problem, tmp_path):
    assert rejected(tmp_path, content) == (line, problem)


def test_blocks_do_not_matter(tmp_path, monkeypatch):
    text = "id,a,b,c,d\n" + "".join(f"n{k},{k},{-k},0.5,1\n" for k in range(200))
    monkeypatch.setattr(columns_module, "_BLOCK_BYTES", 128)
    features = read(tmp_path, text)
    assert features.ids.tolist() == [f"n{k}" for k in range(200)]
    assert dense(features).tolist() == [[k, -k, 0.5, 1] for k in range(200)]
    assert rejected(tmp_path, f"{text}z,1,1,1,?\n") == (202, "column 'd': invalid value '?'")
    assert rejected(tmp_path, f"{text},1,1,1,1\n") == (202, "column 'id' is empty, where an id is needed")


def test_a_model_reads_its_own_columns(tmp_path):
    text = "id,a,city,b,c\nann,1,Rome,2,3\n"
    with pytest.warns(UserWarning, match="2 columns that the model was not trained with left out"):
        features = read(tmp_path, text, names=["b", "a"])
    assert (features.names, dense(features).tolist()) == (["b", "a"], [[2, 1]])
    assert rejected(tmp_path, text, names=["b", "x"])[1] == "there is no column 'x', which the model was trained with"
    bare = "1,2,3,4,5\n2,6,7,8,9\n"
    assert read(tmp_path, bare, names=list("abcd")).names == ["a", "b", "c", "d"]
    sentence = "it has 4 columns of features without names; the model was trained with 3"
    assert rejected(tmp_path, bare, names=list("abc"))[1] == sentence
    np.savez(tmp_path / "table.npz", X=np.array([[1.0, 2.0]]), names=np.array(["red", "blue"]))
    assert dense(read_features(tmp_path / "table.npz", names=["blue", "red"])).tolist() == [[2, 1]]
    with pytest.raises(DataFileError, match="there is no column 'pink' and 1 more, which the model was trained with"):
        read_features(tmp_path / "table.npz", names=["red", "pink", "teal"])


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1).filter(
    lambda word: word == word.strip()
)


@given(table=st.dictionaries(WORDS, st.tuples(*[NUMBERS] * 5), min_size=1, max_size=5))
def test_what_pandas_writes_is_read(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    frame = pd.DataFrame(np.array(list(table.values()), np.float32), index=list(table), columns=list("abcde"))
    frame.to_csv(folder / "table.csv", index_label="id")
    frame.to_parquet(folder / "table.parquet")
    for name in ("table.csv", "table.parquet"):
        features = read_features(folder / name)
        assert list(map(str, features.ids.tolist())) == list(table)
        assert np.array_equal(dense(features), frame.to_numpy())


# Long tables


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("id,a\nann,1\nbob,2\n", "wide"),
        ("id,item\nann,1\nann,2\n", "long"),
        ("id,a\nann,tea\nbob,tea\n", "long"),  # what is not a number cannot be a feature
        ("ann tea 1\nbob tea 3\n", "long"),  # without a header
        ("id,a,b\nann,,1\nbob,2,3\n", "wide"),  # an empty cell is no item
        ("userId,movieId,rating,timestamp\n1,7,5,99\n2,7,5,98\n", "long"),  # a usual name
        ("id,a,b,c\n1,7,5,99\n2,7,5,98\n", "wide"),
        ("id,a,b,c,d\n1,7,5,99,1\n1,7,5,98,1\n", "wide"),  # too many columns
    ],
)
def test_the_first_rows_tell_the_layout(text, layout, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    assert open_table(tmp_path / "table.csv", None, "auto", None)[1] == (layout == "long")


@pytest.mark.parametrize(
    "text",
    [
        "person,height,weight,age\nann,1,2,3\nbob,4,5,6\nann,7,8,9\n",  # more than one number
        "".join(f"p{k} {k} 2\n" for k in range(20)) + "p3 7 8\n",  # one repeat may be a mistake
    ],
)
def test_a_rare_doubt_needs_a_choice(text, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(DataFileError, match=r'ids repeat in column .* choose layout="wide" or "long"'):
        read_features(tmp_path / "table.csv")
    assert open_table(tmp_path / "table.csv", None, "auto", ["4", "9"])[1]  # items that a model was trained with


# Files as people have them: name, how they begin, header if they have one, and what is between columns.
ORDINARY = {
    "MovieLens": ("", "::", True),
    "LastFM": ("userID,artistID,weight", "\t", False),
    "FilmTrust": ("", " ", False),
    "Ciao": ("user,product,rating", ",", False),
    "odd names": ("a,b,c", ";", False),
    "leading blanks": ("", "  ", False),
}


@pytest.mark.parametrize("kind", ORDINARY)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@given(
    counts=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=3, max_size=6).filter(
        lambda rows: all(sum(map(bool, row)) > 1 for row in rows)
    )
)
def test_ordinary_long_files_need_no_option(kind, compress, counts, tmp_path_factory):
    header, between, timed = ORDINARY[kind]
    entries = [(i + 1, k + 100, value) for i, row in enumerate(counts) for k, value in enumerate(row) if value]
    rows = [(*entry, 978300760 + n) if timed else entry for n, entry in enumerate(entries)]
    lines = [header.replace(",", between)] * bool(header) + [between.join(map(str, row)) for row in rows]
    text = "".join(f"{' ' * (kind == 'leading blanks')}{line}\n" for line in lines)
    path = tmp_path_factory.mktemp("ordinary") / "ratings.dat"
    path.write_bytes(compress(text.encode()))
    features = read_features(path)
    assert features.ids.tolist() == list(range(1, len(counts) + 1))
    found = dense(features)
    for i, item, value in entries:
        assert found[i - 1, features.names.index(str(item))] == value
    assert found.sum() == sum(map(sum, counts))


def test_times_and_words_are_no_values(tmp_path, caplog):
    caplog.set_level(logging.INFO, "corrvae.io")
    features = read(tmp_path, "1::7::978300760\n1::8::978300761\n2::7::978300762\n")
    assert (features.names, dense(features).tolist()) == (["7", "8"], [[1, 1], [1, 0]])
    assert "items: column 1 (from 0); not read: column 2 (from 0))" in caplog.text
    features = read(tmp_path, "user,thing,when,stars\n1,7,2001-02-03,4\n1,8,2001-02-03,5\n")
    assert dense(features).tolist() == [[4, 5]]
    assert rejected(tmp_path, "1::7::4\n1::8::x\n") == (2, "column 2 (from 0): invalid value 'x'")


def test_repeats_far_down_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(columns_module, "_SAMPLE_ROWS", 5)
    features = read(tmp_path, "".join(f"{k % 10} {k} 1\n" for k in range(30)))
    assert (features.n_rows, features.n_columns) == (10, 30)


def test_columns_of_a_model_make_a_table_wide(tmp_path):
    (tmp_path / "table.csv").write_text("id,item,b\nann,1,2\nann,2,3\n")
    for names, is_long in ((None, True), (["b", "item"], False), (["b", "tea"], True)):
        assert open_table(tmp_path / "table.csv", None, "auto", names)[1] == is_long


def test_repeats_add_up(tmp_path, caplog):
    features = read(tmp_path, "who,item\nann,tea\nbob,tea\nann,tea\nann,milk\n")
    assert (features.ids.tolist(), features.names) == (["ann", "bob"], ["tea", "milk"])
    assert dense(features).tolist() == [[2, 1], [1, 0]]
    caplog.set_level(logging.INFO, "corrvae.io")
    with pytest.warns(UserWarning, match="1 row with an id and item that were there before; values add up"):
        features = read(tmp_path, "who,item,value\nann,tea,2\nann,milk,0\nann,tea,0.5\n")
    assert dense(features).tolist() == [[2.5, 0]]
    assert features.matrix.nnz == 1
    assert "read as a long table (ids: column 'who', items: column 'item', values: column 'value')" in caplog.text


def test_further_columns_are_not_read(tmp_path):
    features = read(tmp_path, "userId,movieId,rating,time\n1,10,4.5,x\n1,20,3,y\n2,10,1,z\n")
    assert (features.ids.tolist(), features.names) == ([1, 2], ["10", "20"])
    features = read(tmp_path, "item,value,id\ntea,1,ann\n", id_column="id")
    assert (features.ids.tolist(), features.names) == (["ann"], ["tea"])


def test_items_that_a_model_does_not_know_are_left_out(tmp_path):
    text = "who,item,value\nann,tea,2\nbob,rum,1\nann,gin,1\n"
    with pytest.warns(UserWarning, match="2 rows with items that the model was not trained with left out"):
        features = read(tmp_path, text, names=["milk", "tea"])
    assert (features.ids.tolist(), dense(features).tolist()) == (["ann", "bob"], [[0, 2], [0, 0]])


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("who,item,value\nann,tea,\n", 2, "column 'value' is empty; each row needs a value"),
        (
            "who,item,value\nann,tea,1\nann,milk,1e40\n",
            3,
            "column 'value' holds a number that is infinite or too large for 32 bits; rescale the features",
        ),
        ("who,item,value\nann,tea,much\nann,milk,3\n", 2, "column 'value': invalid value 'much'"),
        ("who,item,value\nann,,1\n", 2, "column 'item' is empty, where an id is needed"),
        ("who,item,value\n", None, "there are no rows in it"),
    ],
)
def test_errors_of_long_tables_name_the_line(content, line, problem, tmp_path):
    assert rejected(tmp_path, content, layout="long") == (line, problem)


KEYS = st.sampled_from(["a", "b", "7", "07", "é", "x y"])
ENTRIES = st.lists(st.tuples(KEYS, KEYS, st.integers(1, 5)), min_size=1, max_size=30, unique_by=lambda row: row[:2])


@given(rows=ENTRIES)
def test_a_long_table_is_the_matrix_of_its_entries(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    pq.write_table(pa.table(dict(zip("abc", zip(*rows, strict=True), strict=True))), folder / "t.parquet")
    (folder / "t.csv").write_text("who,item,value\n" + "".join(f"{i},{k},{v}\n" for i, k, v in rows))
    ids, items = list(dict.fromkeys(i for i, _, _ in rows)), list(dict.fromkeys(k for _, k, _ in rows))
    expected = np.zeros((len(ids), len(items)))
    for i, k, v in rows:
        expected[ids.index(i), items.index(k)] = v
    for name in ("t.csv", "t.parquet"):
        features = read_features(folder / name, layout="long")
        assert [str(value) for value in features.ids.tolist()] == ids
        assert features.names == items
        assert sparse.issparse(features.matrix)
        assert np.array_equal(dense(features), expected)


# Parquet


def test_kinds_of_parquet_columns(tmp_path):
    table = pa.table(
        {
            "who": pa.array(["ann", "bob"]).dictionary_encode(),
            "a": pa.array([1, None]),
            "b": pa.array([True, False]),
            "c": pa.array([0.5, 1.5], pa.float32()),
            "d": pa.array([3, 4], pa.uint8()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    features = read_features(tmp_path / "t.parquet", missing="mask")
    assert features.ids.tolist() == ["ann", "bob"]
    assert np.array_equal(dense(features), [[1, 1, 0.5, 3], [np.nan, 0, 1.5, 4]], equal_nan=True)


def test_the_index_of_a_frame_holds_the_ids(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=pd.Index([5, 6], name="who"))
    frame.to_parquet(tmp_path / "named.parquet")
    frame.rename_axis(None).to_parquet(tmp_path / "unnamed.parquet")
    frame.reset_index().to_parquet(tmp_path / "plain.parquet")
    for name in ("named", "unnamed", "plain"):
        features = read_features(tmp_path / f"{name}.parquet")
        assert (features.ids.tolist(), features.names) == ([5, 6], ["a", "b"])


def test_errors_in_parquet_name_row_and_column(tmp_path, monkeypatch):
    monkeypatch.setattr(columns_module, "_BATCH_CELLS", 2)
    for columns, problem in (
        (
            {"who": ["a", "b", None], "a": [1.0, 2.0, 3.0]},
            "row 2 (from 0): column 'who' is empty, where an id is needed",
        ),
        ({"who": [0.5], "a": [1.0]}, "column 'who' holds double; ids and items are integers or strings"),
        (
            {"who": ["a", "b"], "a": [1.0, None]},
            "row 1 (from 0): column 'a' is empty; fill it, or choose missing=\"mask\", which leaves empty cells out of "
            "training",
        ),
        (
            {"who": ["a", "a"], "a": [1.0, 2.0]},
            "row 1 (from 0): the id 'a' is there twice; a table with a row for each id and item needs layout=\"long\"",
        ),
    ):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        with pytest.raises(DataFileError) as caught:
            read_features(tmp_path / "t.parquet", layout="wide")
        assert caught.value.problem == problem
