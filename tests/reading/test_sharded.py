import warnings

import numpy as np
import pytest

from corrvae.errors import DataFileError
from corrvae.reading import read_features
from corrvae.shards import ShardedMatrix
from support.shards import counts, sharded, whole

IDS, NAMES = np.arange(60) * 3, tuple(f"i{k}" for k in range(25))


def test_a_folder_is_read_as_features(tmp_path):
    sharded(tmp_path, counts(), 25, ids=IDS, names=NAMES)
    features = read_features(tmp_path / "shards")
    assert isinstance(features.matrix, ShardedMatrix)
    assert (features.ids.tolist(), features.names) == (IDS.tolist(), NAMES)
    assert (features.n_rows, features.n_columns) == (60, 25)
    assert read_features(tmp_path / "shards", names=NAMES).matrix.shape == (60, 25)


def test_columns_are_those_that_a_model_knows(tmp_path):
    sharded(tmp_path, counts(), 25, ids=IDS, names=NAMES)
    wanted = ("i7", "other", "i2")
    with pytest.warns(UserWarning, match="the model reads 3 items; 23 items unknown to it are left out"):
        features = read_features(tmp_path / "shards", names=wanted)
    expected = np.zeros((60, 3))
    expected[:, [0, 2]] = counts().toarray()[:, [7, 2]]
    np.testing.assert_array_equal(whole(features.matrix), expected)
    assert features.names == wanted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_features(tmp_path / "shards", names=(*reversed(NAMES), "another"))


def test_columns_without_names_must_be_as_many(tmp_path):
    sharded(tmp_path, counts())
    assert read_features(tmp_path / "shards", names=NAMES).names == NAMES
    with pytest.raises(DataFileError, match="it has 25 columns, where the model was trained with 2"):
        read_features(tmp_path / "shards", names=("a", "b"))


def test_what_is_no_folder_of_shards(tmp_path):
    with pytest.raises(DataFileError, match="a folder without shards; corrvae data shard makes some"):
        read_features(tmp_path)
    sharded(tmp_path, counts())
    with pytest.raises(DataFileError, match="shards have no column 'who' of ids"):
        read_features(tmp_path / "shards", id_column="who")
    (tmp_path / "shards" / "shards" / "000000.values.npy").write_bytes(b"x")
    with pytest.raises(DataFileError, match=r"values\.npy: damaged"):
        read_features(tmp_path / "shards")
