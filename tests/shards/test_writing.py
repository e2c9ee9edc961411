import errno
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from corrvae.errors import FolderError
from corrvae.shards import open_shards, write_shards
from corrvae.shards.files import ArrayWriter
from support.rows import matrices
from support.shards import counts, whole


@settings(max_examples=30)
@given(st.lists(matrices(max_columns=5), min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 12))
def test_blocks_of_any_size_make_shards_within_the_limits(tmp_path_factory, blocks, most_rows, most_entries):
    path = tmp_path_factory.mktemp("x") / "shards"
    wide = [sparse.csr_array(np.pad(b.toarray(), ((0, 0), (0, 7 - b.shape[1])))) for b in blocks]
    write_shards(path, iter(wide), n_columns=7, most_rows=most_rows, most_entries=most_entries)
    found = open_shards(path).matrix
    expected = np.concatenate([block.toarray() for block in wide]).astype(np.float32)
    np.testing.assert_array_equal(whole(found), expected)
    for shard in found._shards:
        assert shard.n_rows <= most_rows
        assert shard.n_entries <= most_entries or shard.n_rows == 1


def test_a_folder_of_shards_is_replaced_and_nothing_else_is(tmp_path):
    write_shards(tmp_path / "x", [counts(5)], n_columns=25)
    write_shards(tmp_path / "x", [counts(7)], n_columns=25)
    assert open_shards(tmp_path / "x").matrix.shape == (7, 25)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").write_text("dear")
    with pytest.raises(FolderError, match="in the way"):
        write_shards(tmp_path / "mine", [counts(5)], n_columns=25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "x"]


def test_what_does_not_fit_together_is_refused_and_leaves_nothing(tmp_path):
    for options, words in (
        ({"ids": np.arange(3)}, "3 ids for 5"),
        ({"names": ["a"]}, "1 names for 25"),
        ({"n_columns": 24}, "has not 24 columns"),
    ):
        with pytest.raises(ValueError, match=words):
            write_shards(tmp_path / "x", [counts(5)], **{"n_columns": 25, **options})
    with pytest.raises(ValueError, match="no rows"):
        write_shards(tmp_path / "x", [], n_columns=25)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    write = ArrayWriter.append

    def full(self, numbers):
        if self.count > 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, numbers)

    with patch.object(ArrayWriter, "append", full), pytest.raises(OSError, match="No space left") as caught:
        write_shards(tmp_path / "x", (counts(5) for _ in range(5)), n_columns=25)
    assert caught.value.filename == str(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
