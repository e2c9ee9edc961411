import os
import subprocess
import sys
from pathlib import Path

import pytest

from corrvae.cli.holding import hold
from corrvae.drafts import take_folder
from corrvae.errors import FolderError
from corrvae.persistence import write_folder

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


@pytest.mark.skipif(os.name == "nt", reason="there are no locks")
def test_a_folder_that_another_program_holds_is_refused_and_stays(tmp_path):
    folder = tmp_path / "run"
    with hold(folder):
        for _ in range(2):
            with pytest.raises(FolderError, match="run: another corrvae is training in this folder") as raised:
                hold(folder).__enter__()
            assert raised.value.path == folder
            assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []
    with hold(folder):
        (folder / "note").write_text("kept")
    assert (folder / "note").read_text() == "kept"


@pytest.mark.skipif(os.name == "nt", reason="there are no locks")
def test_a_folder_that_was_removed_as_it_was_taken_is_made_again(tmp_path, monkeypatch):
    folder, seen = tmp_path / "deep" / "run", []

    def unlucky(path):
        seen.append(path)
        if len(seen) == 1:  # before it is opened
            path.rmdir()
            path.parent.rmdir()
        lock = take_folder(path)
        if len(seen) == 2:  # before it is locked
            path.rmdir()
        return lock

    monkeypatch.setattr("corrvae.cli.holding.take_folder", unlucky)
    with hold(folder):
        assert len(seen) == 3
        with pytest.raises(BlockingIOError):
            take_folder(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_folder_will_do(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    with hold(tmp_path / "link"):
        (tmp_path / "link" / "note").write_text("kept")
        with pytest.raises(FolderError, match="another corrvae"), hold(tmp_path / "there"):
            pass
    assert (tmp_path / "there" / "note").read_text() == "kept"


def test_of_programs_that_begin_at_once_one_has_the_folder(tmp_path):
    """Each counts up a number that it reads first; had two been inside together, a count would be lost."""
    count = tmp_path / "count"
    count.write_text("0")
    script = f"""
import sys, time
from pathlib import Path
from corrvae.cli.holding import FolderError, hold
done = 0
while done < 40:
    try:
        with hold(Path({str(tmp_path / "deep" / "run")!r})):
            before = int(Path({str(count)!r}).read_text())
            time.sleep(0.001)
            Path({str(count)!r}).write_text(str(before + 1))
            done += 1
    except FolderError as error:
        assert error.problem.startswith("another corrvae is training"), error
"""
    started = [subprocess.Popen([sys.executable, "-c", script], env=ENVIRONMENT) for _ in range(2)]
    assert [one.wait(timeout=120) for one in started] == [0, 0]
    assert count.read_text() == "80"


def test_a_folder_that_cannot_be_made_is_told_beforehand(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FolderError, match=r"deep: cannot be written \(Not a directory\)") as raised:
        hold(tmp_path / "file" / "deep").__enter__()
    assert raised.value.path == tmp_path / "file" / "deep"
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(FolderError, match="there is a file of this name"):
            hold(tmp_path / name).__enter__()
    assert sorted(place.name for place in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.skipif(os.name == "nt", reason="a folder cannot be opened")
def test_the_names_of_all_folders_that_are_made_are_written_through(tmp_path, monkeypatch):
    written, through = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (written.append(os.fstat(file).st_ino), through(file)))
    with hold(tmp_path / "deep" / "run"):
        assert {place.stat().st_ino for place in (tmp_path, tmp_path / "deep")} <= set(written)
        written.clear()
        write_folder(tmp_path / "deep" / "run" / "checkpoint" / "first", kind="note", document={})
        above = [tmp_path / "deep" / "run", tmp_path / "deep" / "run" / "checkpoint"]
        assert {place.stat().st_ino for place in above} <= set(written)
