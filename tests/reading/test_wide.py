import numpy as np
import pytest
from scipy import sparse

from support.tables import dense, read, refused


def test_empty_cells_are_missing_numbers(tmp_path):
    features = read(tmp_path, "id,a,b,c,d\nann,1,,NA,3\nbob,nan,4, ,null\n")
    nan = np.nan
    assert np.array_equal(dense(features), [[1, nan, nan, 3], [nan, 4, nan, nan]], equal_nan=True)


def test_ids_may_be_in_any_named_column(tmp_path):
    features = read(tmp_path, "a,who,b,c,d\n1,7,2,3,4\n5,9,6,7,8\n", id_column="who")
    assert features.ids.tolist() == [7, 9]
    assert features.names == ("a", "b", "c", "d")
    assert dense(features).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_tables_of_mostly_zeros_become_sparse(tmp_path):
    rows = np.eye(30, 10)
    text = "id," + ",".join(f"f{k}" for k in range(10)) + "\n"
    text += "".join(f"{i}," + ",".join(f"{v:g}" for v in row) + "\n" for i, row in enumerate(rows))
    features = read(tmp_path, text)
    assert isinstance(features.matrix, sparse.csr_array)
    assert np.array_equal(dense(features), rows)


def test_a_model_reads_its_own_columns_only(tmp_path):
    text = "id,a,city,b,c\nann,1,Rome,2,3\n"
    with pytest.warns(UserWarning, match="the model reads 2 columns; 2 columns unknown to it are left out"):
        features = read(tmp_path, text, names=("b", "a"))
    assert (features.names, dense(features).tolist()) == (("b", "a"), [[2, 1]])
    assert refused(tmp_path, text, names=("b", "x")) == "there is no column 'x', which the model was trained with"
    bare = "1,2,3,4,5\n2,6,7,8,9\n"
    assert read(tmp_path, bare, names=tuple("abcd")).names == ("a", "b", "c", "d")
    problem = refused(tmp_path, bare, names=tuple("abc"))
    assert problem == "it has 4 columns of features without names, where the model has 3"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,a,b,c,d\n", "there are no rows in it"),
        ("id,a,b,c,d\nann,1,2,3,1e39\n", "line 2 has a number in column 'd' that is infinite or too large"),
        ("id,a,b,c,d\nann,1,2,inf,1\n", "line 2 has a number in column 'c' that is infinite or too large"),
        ("a,b,c,d,e\n0.5,1,2,3,1\n", "column 'a' is taken for the ids, but holds numbers such as 0.5; name the column"),
        ("id,a,b,c,d\nx,1,1,1,1\ny,1,1,1,1\nx,1,1,1,1\n", "line 4 has the id 'x', which line 2 has too; if this is"),
        ("id,a,,c,d\nx,1,1,1,1\n", "column 2 (from 0) has no name"),
    ],
)
def test_what_cannot_be_features(content, problem, tmp_path):
    assert refused(tmp_path, content).startswith(problem)
