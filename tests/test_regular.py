import os
import socket
from pathlib import Path

import pytest

from corrvae import CorrelationGraph
from corrvae.answers.naming import read_ids
from corrvae.answers.run import is_run_folder
from corrvae.cli.settings import read_config
from corrvae.datasets.archives import open_member
from corrvae.errors import DataFileError, FolderError
from corrvae.experiments.records import read_record
from corrvae.experiments.sources import data_files
from corrvae.persistence import kind_of, read_folder
from corrvae.reading import read_features
from corrvae.regular import check_inside, open_inside, open_regular, told_as_unreadable
from corrvae.shards.files import OFFSETS, ArrayFile
from corrvae.shards.folder import is_shard_folder
from corrvae.training import CSVLog, Progress


def open_ratings(path):
    with open_member(path, ("ratings.csv",)):
        pass


READERS = [
    open_regular,
    CorrelationGraph.from_file,
    read_features,
    read_config,
    read_record,
    open_ratings,
    lambda path: data_files(str(path)),
    lambda path: CSVLog(path)(Progress(5, 5, 1.0, 1.0, -1.0, {"step": 5})),
]


@pytest.fixture
def pipe(tmp_path):
    """A pipe that nobody writes to: whoever opens it as a file waits for ever."""
    path = tmp_path / "ratings.csv"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("read", READERS)
def test_nobody_waits_for_a_pipe_or_reads_a_device(read, pipe):
    for path in (pipe, Path("/dev/zero"), Path("/dev/tty")):
        with pytest.raises(DataFileError, match="a pipe, a device or a socket, not a file") as refusal:
            read(path)
        assert refusal.value.path == path


def test_nobody_waits_for_a_pipe_in_a_folder(pipe):
    with pytest.raises(DataFileError, match="a pipe"):
        open_ratings(pipe.parent)
    document = pipe.rename(pipe.with_name("config.json"))
    assert not is_run_folder(document.parent)
    assert not is_shard_folder(document.parent)
    assert kind_of(document.parent) is None
    with pytest.raises(FolderError, match="not a regular file"):
        read_folder(document.parent, kind="note")
    assert read_ids(str(document)) == [str(document)]  # no file, so an id


def test_a_file_that_becomes_a_pipe_is_refused(tmp_path, pipe, monkeypatch):
    plain = tmp_path / "plain"
    plain.write_bytes(b"x")
    found = plain.stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: found)
    monkeypatch.setattr(Path, "lstat", lambda *_, **__: found)
    with pytest.raises(DataFileError, match="a pipe"):
        open_regular(pipe)
    for read in (open_inside, lambda path: ArrayFile.find(path, OFFSETS, 1)):
        with pytest.raises(FolderError, match="not a regular file"):
            read(pipe)
    (tmp_path / "link").symlink_to(plain)
    with pytest.raises(FolderError, match="cannot be read"):
        open_inside(tmp_path / "link")


def test_links_in_a_folder_are_not_followed(tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder"):
        (tmp_path / f"to-{name}").symlink_to(name)
    with open_inside(tmp_path / "file") as stream:
        assert stream.read() == b"text"
    check_inside(tmp_path / "folder")
    for name in ("to-file", "folder"):
        with pytest.raises(FolderError, match="not a regular file; links are not followed"):
            open_inside(tmp_path / name)
    for name in ("to-folder", "file"):
        with pytest.raises(FolderError, match="not a folder; links are not followed"):
            check_inside(tmp_path / name)
    with pytest.raises(FolderError, match="there is no such folder"):
        check_inside(tmp_path / "none")


def test_a_socket_is_refused_and_a_link_to_a_file_is_not(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(DataFileError, match="a socket"):
            open_regular(tmp_path / "s")
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as stream:
        assert stream.read() == b"text"
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")


def test_what_the_system_refuses_is_told():
    with (
        pytest.raises(FolderError, match=r"run: cannot be read \(Permission denied\)"),
        told_as_unreadable(Path("run")),
    ):
        raise PermissionError(13, "Permission denied")
    with pytest.raises(FolderError, match="of its own"), told_as_unreadable(Path("run")):
        raise FolderError("run", "of its own")
