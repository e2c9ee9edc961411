import tracemalloc
import warnings

import pyarrow as pa
import pytest

from corrvae.graphs.files import lines
from corrvae.reading import read_features
from corrvae.reading import text as text_module
from support.tables import dense, read, refused


def test_repeats_without_values_are_counted(tmp_path):
    features = read(tmp_path, "who,item\nann,tea\nbob,tea\nann,tea\nann,milk\n")
    assert (features.ids.tolist(), features.names) == (["ann", "bob"], ("tea", "milk"))
    assert dense(features).tolist() == [[2, 1], [1, 0]]


def test_repeats_of_values_add_up_and_are_told(tmp_path):
    with pytest.warns(UserWarning, match="1 row repeats an id and item; values of the same two are added up"):
        features = read(tmp_path, "who,item,value\nann,tea,2\nann,milk,0\nann,tea,0.5\n")
    assert dense(features).tolist() == [[2.5, 0]]
    assert features.matrix.nnz == 1


def test_further_columns_do_not_matter(tmp_path):
    features = read(tmp_path, "userId,movieId,rating,time\n1,10,4.5,x\n1,20,3,y\n2,10,1,z\n")
    assert (features.ids.tolist(), features.names) == ([1, 2], ("10", "20"))
    assert dense(features).tolist() == [[4.5, 3], [1, 0]]


def test_items_unknown_to_a_model_are_left_out_and_counted(tmp_path):
    text = "who,item,value\nann,tea,2\nbob,rum,1\nann,gin,1\n"
    with pytest.warns(UserWarning, match="2 rows are about items that the model does not know, and left out"):
        features = read(tmp_path, text, names=("milk", "tea"))
    assert features.ids.tolist() == ["ann", "bob"]
    assert dense(features).tolist() == [[0, 2], [0, 0]]


def test_batches_do_not_matter(tmp_path, monkeypatch):
    text = "".join(f"u{k % 7} i{k % 11} {k}\n" for k in range(77))
    whole = read(tmp_path, text, layout="long")
    monkeypatch.setattr(text_module, "BLOCK_BYTES", 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pieces = read(tmp_path, text, layout="long")
    assert (pieces.names, pieces.ids.tolist()) == (whole.names, whole.ids.tolist())
    for k in range(77):
        assert dense(pieces)[whole.ids.tolist().index(f"u{k % 7}"), whole.names.index(f"i{k % 11}")] == k


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("who,item,value\nann,tea,\n", "line 2 has no value"),
        ("who,item,value\nann,tea,1\nann,milk,1e40\n", "line 3 has the value 1e+40, which is infinite or too large"),
        ("who,item,value\nann,tea,much\n", "line 2 has 'much' in column 'value', which is not a number"),
        ("who,item,value\nann,,1\n", "line 2 has nothing in column 'item'"),
        ("who,item,value\n", "there are no rows in it"),
    ],
)
def test_faults_are_told_with_their_lines(content, problem, tmp_path):
    assert refused(tmp_path, content, layout="long") == problem


def peak_of_reading(path, monkeypatch, piece):
    """Give the most memory of Python and of Arrow while a file is read so many bytes at a time."""
    monkeypatch.setattr(text_module, "BLOCK_BYTES", piece)
    monkeypatch.setattr(lines, "READ_BYTES", piece)
    pool = pa.system_memory_pool()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    most = pool.max_memory()
    tracemalloc.start()
    try:
        assert read_features(path).matrix.nnz == 1000 * 50
        assert pool.max_memory() > 0
        return tracemalloc.get_traced_memory()[1] + pool.max_memory() - most
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def test_a_long_file_is_read_in_pieces(tmp_path, monkeypatch):
    """Most of the file is a column that is not read: no more of it is in memory than a few pieces."""
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        file.write("who,item,value,review\n")
        for begin in range(0, 1000, 100):
            file.writelines(f"u{r},i{r % 50 + c},1,{'x' * 400}\n" for r in range(begin, begin + 100) for c in range(50))
    size = path.stat().st_size
    assert size > 20_000_000
    assert peak_of_reading(path, monkeypatch, 1 << 17) < size / 3
    # so that the line above proves something
    assert peak_of_reading(path, monkeypatch, 2 * size) > size
