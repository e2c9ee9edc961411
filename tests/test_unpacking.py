import bz2
import gzip

import pytest

from corrvae.errors import DataFileError
from corrvae.unpacking import Unpacked, most_unpacked


@pytest.mark.parametrize(("pack", "opened"), [(gzip.compress, gzip.GzipFile), (bz2.compress, bz2.BZ2File)])
def test_what_is_unpacked_has_an_end(tmp_path, pack, opened):
    path = tmp_path / "packed"
    path.write_bytes(pack(b"a line\n" * 300_000))
    with opened(path) as source, pytest.raises(DataFileError, match="if it is right, unpack it first"):
        Unpacked(path, source, path.stat().st_size).read()


def test_as_much_as_is_allowed_is_read_and_read_again(tmp_path):
    path, text = tmp_path / "packed", b"a line\n" * 150_000  # a little more than any file may stand for
    path.write_bytes(gzip.compress(text))
    size = path.stat().st_size
    assert most_unpacked(0) < len(text) < most_unpacked(size)
    with gzip.GzipFile(path) as source, Unpacked(path, source, size) as stream:
        assert stream.readline() == b"a line\n"
        assert stream.tell() == 7
        for _ in range(3):  # what is read again does not count again
            stream.seek(0)
            assert stream.read() == text
