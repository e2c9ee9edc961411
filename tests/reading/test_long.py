import warnings

import pytest

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
