import errno
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from corrvae import drafts
from corrvae.drafts import discard, draft_of, draft_of_file, exchange, put_in_place, sweep, take_folder


def make(parent: Path, name: str, content: str) -> Path:
    folder = parent / name
    folder.mkdir()
    (folder / "note").write_text(content)
    return folder


def names(parent: Path) -> list[str]:
    return sorted(place.name for place in parent.iterdir())


@pytest.fixture(params=["at once", "in two steps"])
def way(request, monkeypatch):
    """Where the system can exchange names, and where it cannot."""
    if request.param == "in two steps":
        monkeypatch.setattr(drafts, "_exchanging_call", lambda: None)
    elif drafts._exchanging_call() is None:
        pytest.fail("this system cannot exchange two names")
    return request.param


def test_two_folders_change_names(tmp_path):
    first, second = make(tmp_path, "first", "1"), make(tmp_path, "second", "2")
    assert exchange(first, second)
    assert (first / "note").read_text() + (second / "note").read_text() == "21"
    assert not exchange(first, tmp_path / "nowhere")


def test_a_system_that_cannot_exchange_says_so(tmp_path, monkeypatch):
    first, second = make(tmp_path, "first", "1"), make(tmp_path, "second", "2")

    def fail_with(number):
        def call(*_):
            drafts.ctypes.set_errno(number)
            return -1

        monkeypatch.setattr(drafts, "_exchanging_call", lambda: call)

    fail_with(errno.ENOSYS)
    assert not exchange(first, second)
    fail_with(errno.EACCES)
    with pytest.raises(PermissionError):
        exchange(first, second)


@pytest.mark.parametrize("before", [None, "empty", "full"])
def test_a_draft_takes_its_place(tmp_path, way, before):
    target = tmp_path / "run"
    if before is not None:
        target.mkdir()
    if before == "full":
        (target / "old").write_text("x")
    with draft_of(target) as draft:
        (draft / "note").write_text("new")
        put_in_place(draft, target)
    assert names(tmp_path) == ["run"]
    assert names(target) == ["note"]


def test_a_draft_that_is_given_up_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), draft_of(tmp_path / "run"):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_a_rename_that_fails_puts_the_old_folder_back(tmp_path, monkeypatch):
    monkeypatch.setattr(drafts, "_exchanging_call", lambda: None)
    target, rename = make(tmp_path, "run", "old"), Path.rename

    def fail_for_the_draft(self, to):
        if self.name.endswith(".writing"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_for_the_draft)
    with pytest.raises(PermissionError), draft_of(target) as draft:
        put_in_place(draft, target)
    assert (target / "note").read_text() == "old"
    assert names(tmp_path) == ["run"]


def test_another_writer_that_comes_first_is_replaced(tmp_path, monkeypatch):
    target, rename = tmp_path / "run", Path.rename

    def rename_too_late(self, to):
        if self.name.endswith(".writing") and not target.exists():
            make(tmp_path, "run", "of the other")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", rename_too_late)
    with draft_of(target) as draft:
        (draft / "note").write_text("mine")
        put_in_place(draft, target)
    assert (target / "note").read_text() == "mine"
    assert names(tmp_path) == ["run"]


def test_a_writer_that_never_gets_through_is_told(tmp_path, monkeypatch):
    def never(*_):
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(drafts, "exchange", never)
    with pytest.raises(OSError, match="others keep writing"), draft_of(tmp_path / "run") as draft:
        put_in_place(draft, tmp_path / "run")


def test_what_dead_writers_left_is_swept_and_what_live_ones_write_is_not(tmp_path):
    target = make(tmp_path, "run", "whole")
    make(tmp_path, ".run.01234567.writing", "half")
    make(tmp_path, ".run.01234567.old", "older")
    make(tmp_path, ".other.01234567.writing", "of another folder")
    with draft_of(target) as draft:
        script = f"from pathlib import Path; from corrvae.drafts import sweep; sweep(Path({str(target)!r}))"
        path = {"PYTHONPATH": str(Path(drafts.__file__).parents[1])}
        subprocess.run([sys.executable, "-c", script], env=os.environ | path, check=True)
        assert names(tmp_path) == sorted([draft.name, ".other.01234567.writing", "run"])
    assert (target / "note").read_text() == "whole"


def test_one_that_stepped_aside_for_no_other_is_brought_back(tmp_path):
    make(tmp_path, ".run[1].01234567.old", "whole")
    sweep(tmp_path / "run[1]")
    assert (tmp_path / "run[1]" / "note").read_text() == "whole"
    assert names(tmp_path) == ["run[1]"]


def test_a_folder_that_is_removed_loses_its_name_first(tmp_path, monkeypatch):
    place = make(tmp_path, "run", "x")
    monkeypatch.setattr(drafts.shutil, "rmtree", lambda *_, **__: None)  # as if killed here
    discard(place)
    (left,) = names(tmp_path)
    assert left.startswith(".run.")
    monkeypatch.undo()
    sweep(place)
    assert names(tmp_path) == []
    discard(place)  # no longer there


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Another program may sweep between the two steps; it holds the lock, has removed the folder, or both."""
    lock, misfortunes = drafts.take_folder, []

    def unlucky(folder):
        misfortunes.append(folder)
        if len(misfortunes) == 1:
            raise BlockingIOError
        if len(misfortunes) == 2:
            folder.rmdir()
        descriptor = lock(folder)
        if len(misfortunes) == 3:
            folder.rmdir()
        return descriptor

    monkeypatch.setattr(drafts, "take_folder", unlucky)
    with draft_of(tmp_path / "run") as draft:
        assert draft == misfortunes[3]
        assert draft.is_dir()


def test_where_there_are_no_locks_drafts_are_made_and_none_are_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(drafts, "take_folder", lambda _: None)
    make(tmp_path, ".run.01234567.writing", "perhaps of another program")
    with draft_of(tmp_path / "run") as draft:
        sweep(tmp_path / "run")
        assert draft.is_dir()
    assert names(tmp_path) == [".run.01234567.writing"]


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    target = tmp_path / "note"
    target.write_text("before")

    def break_off():
        with draft_of_file(target) as draft:
            draft.write_text("half")
            raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        break_off()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("note", "before")]
    with draft_of_file(target) as draft:
        draft.write_text("whole")
        assert target.read_text() == "before"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("note", "whole")]


def test_what_a_person_named_like_a_draft_stays(tmp_path):
    for name in (".run.previous.old", ".run.original.writing"):
        make(tmp_path, name, "mine")
    (tmp_path / ".run.original.part").write_text("mine")
    before = names(tmp_path)
    sweep(tmp_path / "run")
    with draft_of_file(tmp_path / "run") as draft:
        draft.write_text("a file")
    sweep(tmp_path / "run")
    assert names(tmp_path) == sorted([*before, "run"])


def test_what_a_killed_writer_of_a_file_left_is_removed_and_what_another_writes_is_not(tmp_path):
    target = tmp_path / "note"
    script = f"from corrvae.drafts import *\nwith draft_of_file(Path({str(target)!r})) as d: os.kill(os.getpid(), 9)"
    path = {"PYTHONPATH": str(Path(drafts.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", script], env=os.environ | path, check=False).returncode == -9
    left = names(tmp_path)
    assert re.fullmatch(r"\.note\.[0-9a-f]{8}\.part", *left)
    with draft_of_file(target) as first:
        assert names(tmp_path) == [first.name]
        with draft_of_file(target) as second:
            second.write_text("second")
        assert first.exists()
        first.write_text("first")
    assert [(place.name, place.read_text()) for place in tmp_path.iterdir()] == [("note", "first")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize(
    "make",
    [os.mkfifo, lambda place: place.symlink_to(place.parent), lambda place: place.symlink_to("pipe")],
    ids=["pipe", "link to a folder", "link to a pipe"],
)
def test_nobody_waits_for_what_only_has_the_name_of_a_draft(tmp_path, make):
    os.mkfifo(tmp_path / "pipe")
    names = {".run.deadbeef.writing", ".run.deadbeef.old", ".note.deadbeef.part"}
    for name in names:
        make(tmp_path / name)
        with pytest.raises(OSError, match="neither a file nor a folder"):
            take_folder(tmp_path / name)
    sweep(tmp_path / "run")
    with draft_of_file(tmp_path / "note") as draft:
        draft.write_text("whole")
    assert {place.name for place in tmp_path.iterdir()} == names | {"note", "pipe"}


def test_a_folder_that_has_the_name_of_a_files_draft_is_not_in_the_way(tmp_path):
    (tmp_path / ".note.deadbeef.part").mkdir()
    (tmp_path / ".run.deadbeef.writing").write_text("mine")
    sweep(tmp_path / "run")
    with draft_of_file(tmp_path / "note") as draft:
        draft.write_text("whole")
    assert len([*tmp_path.iterdir()]) == 3


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace

    def flush(number):
        done.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        fsync(number)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "replace", lambda self, other: (done.append("named"), replace(self, other)))
    with draft_of_file(tmp_path / "note") as draft:
        draft.write_text("whole")
    assert done == [str(draft), "named", str(tmp_path)]


@pytest.mark.parametrize(
    ("error", "told"), [((28, "full"), "target"), ((28, "full", "other"), "other"), (("no",), None)]
)
def test_a_failure_to_write_names_the_file_once(error, told, tmp_path):
    with pytest.raises(OSError, match=error[-1]) as raised, draft_of_file(tmp_path / "target"):
        raise OSError(*error)
    assert raised.value.filename == (str(tmp_path / told) if told == "target" else told)
    assert list(tmp_path.iterdir()) == []


def write(target, text="whole"):
    with draft_of_file(target) as draft:
        draft.write_text(text)


def test_a_link_keeps_pointing_to_what_is_written(tmp_path):
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "note", tmp_path / "link"
    link.symlink_to(Path("kept", "note"))
    for text in ("new", "newer"):  # the first time the link leads to nothing yet
        write(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert names(tmp_path) == ["kept", "link"]
    assert names(tmp_path / "kept") == ["note"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_device_and_a_pipe_are_written_straight_through(tmp_path):
    """The device is a terminal of the test's own, in a folder where nothing can be replaced: none of the system's."""
    pipe, link = tmp_path / "pipe.csv", tmp_path / "link.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    screen, device = os.openpty()
    link.symlink_to(os.ttyname(device))
    try:
        write(pipe)
        assert os.read(reader, 100) == b"whole"
        for place in (link, Path(os.ttyname(device))):
            write(place)
            assert os.read(screen, 100) == b"whole"
    finally:
        for descriptor in (reader, screen, device):
            os.close(descriptor)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    assert names(tmp_path) == ["link.csv", "pipe.csv"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are others there")
def test_a_file_keeps_its_permissions_and_a_new_one_has_those_of_new_files(tmp_path):
    target, before = tmp_path / "note", os.umask(0o027)
    try:
        write(target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        for mode in (0o600, 0o664):
            target.chmod(mode)
            write(target)
            assert stat.S_IMODE(target.stat().st_mode) == mode
    finally:
        os.umask(before)
