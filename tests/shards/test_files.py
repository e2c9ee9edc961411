import hashlib
import os

import numpy as np
import pytest

from corrvae.errors import FolderError
from corrvae.shards.files import COLUMNS, OFFSETS, VALUES, ArrayFile, ArrayWriter

MAGIC = b"\x93NUMPY"


@pytest.fixture
def path(tmp_path):
    with ArrayWriter(tmp_path / "a.npy", OFFSETS) as writer:
        for part in np.split(np.arange(1000), [1, 1, 700]):
            writer.append(part)
    return tmp_path / "a.npy"


def test_what_is_written_is_read_by_part_and_through_a_map(path):
    np.testing.assert_array_equal(np.load(path), np.arange(1000))
    found = ArrayFile.find(path, OFFSETS, 1000)
    np.testing.assert_array_equal(found.map(), np.arange(1000))
    np.testing.assert_array_equal(found.read(5, 9), [5, 6, 7, 8])
    assert not found.map().flags.writeable


def test_numbers_that_were_changed_are_told_by_their_checksum(path):
    numbers = np.arange(1000)
    checksum = hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()
    ArrayFile.find(path, OFFSETS, 1000, checksum).check()
    numbers[500] += 1
    np.save(path, numbers)
    ArrayFile.find(path, OFFSETS, 1000).check()  # none was recorded
    with pytest.raises(FolderError, match=r"a\.npy: damaged: its contents do not match its checksum"):
        ArrayFile.find(path, OFFSETS, 1000, checksum).check()


def test_an_array_may_be_empty(tmp_path):
    with ArrayWriter(tmp_path / "a.npy", VALUES):
        pass
    found = ArrayFile.find(tmp_path / "a.npy", VALUES, 0)
    assert found.map().tolist() == found.read(0, 0).tolist() == []


@pytest.mark.parametrize(("kind", "count"), [(OFFSETS, 999), (OFFSETS, 1001), (COLUMNS, 1000), (np.dtype(">i8"), 1000)])
def test_another_array_is_refused(path, kind, count):
    with pytest.raises(FolderError, match="damaged: it should hold"):
        ArrayFile.find(path, kind, count)


def test_a_file_of_another_size_is_refused(path):
    data = path.read_bytes()
    for wrong in (data[:-1], data + b"x"):
        path.write_bytes(wrong)
        with pytest.raises(FolderError, match="damaged: it has"):
            ArrayFile.find(path, OFFSETS, 1000)


@pytest.mark.parametrize(
    "data", [b"", b"rubbish", MAGIC + b"\x03\x00" + bytes(200), MAGIC + b"\x01\x00\x10\x00((((" + bytes(50)]
)
def test_what_is_no_array_is_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(FolderError, match="damaged: not an array"):
        ArrayFile.find(path, OFFSETS, 1000)


def test_objects_are_refused_and_never_unpickled(path):
    np.save(path, np.array([{}] * 1000), allow_pickle=True)
    with pytest.raises(FolderError, match="damaged: it should hold"):
        ArrayFile.find(path, OFFSETS, 1000)


def test_links_and_folders_are_refused(path, tmp_path):
    (tmp_path / "link.npy").symlink_to(path)
    (tmp_path / "folder.npy").mkdir()
    for name in ("link.npy", "folder.npy"):
        with pytest.raises(FolderError, match="not a regular file"):
            ArrayFile.find(tmp_path / name, OFFSETS, 1000)
    with pytest.raises(FolderError, match="cannot be read"):
        ArrayFile.find(tmp_path / "nowhere.npy", OFFSETS, 1000)


def test_a_file_that_changed_since_is_told(path):
    found = ArrayFile.find(path, OFFSETS, 1000)
    os.utime(path, (1, 1))
    for use in (found.map, lambda: found.read(0, 1)):
        with pytest.raises(FolderError, match="has changed since it was opened"):
            use()


def test_a_writer_that_fails_leaves_the_file_unfinished(tmp_path):
    with pytest.raises(ValueError, match="could not convert"), ArrayWriter(tmp_path / "a.npy", VALUES) as writer:
        writer.append(np.array(["x"]))
    with pytest.raises(FolderError):
        ArrayFile.find(tmp_path / "a.npy", VALUES, 3)
