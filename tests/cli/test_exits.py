import os
import subprocess
import sys
from errno import EACCES, EIO, ENOENT, ENOSPC
from pathlib import Path

import pytest
import torch
import typer

from corrvae.cli.exits import BAD_INPUT, FAILED, INTERRUPTED, plainly
from corrvae.errors import DataFileError, FolderError, LostRankError, MissingDataFileError, TrainingError


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ValueError("tau must be between -1 and 1"), BAD_INPUT, "tau must be between -1 and 1"),
        (TypeError("a graph is asked for"), BAD_INPUT, "a graph is asked for"),
        (DataFileError(Path("edges.csv"), "line 3 has one field"), BAD_INPUT, "edges.csv: line 3 has one field"),
        (FileNotFoundError(ENOENT, "no such file", "x.csv"), BAD_INPUT, "x.csv: no such file"),
        (MissingDataFileError("x.csv"), BAD_INPUT, "x.csv: there is no such file"),
        (PermissionError(EACCES, "Permission denied", b"x.csv"), BAD_INPUT, "x.csv: permission denied"),
        (OSError(EIO, "HTTP is refused", 3), BAD_INPUT, "HTTP is refused"),
        (OSError("nobody answers"), BAD_INPUT, "nobody answers"),
        (OSError(ENOSPC, "no space left on device"), FAILED, "no space left on device"),
        (TrainingError(7, "edge", (), None), FAILED, str(TrainingError(7, "edge", (), None))),
        (LostRankError("closed"), FAILED, str(LostRankError("closed"))),
        (MemoryError(), FAILED, "there is not enough memory for this"),
        (
            MemoryError("Unable to allocate 3 GiB"),
            FAILED,
            "there is not enough memory for this (Unable to allocate 3 GiB)",
        ),
        (
            RuntimeError("CUDA out of memory. Tried to allocate 2 GiB.\nSee the documentation"),
            FAILED,
            "there is not enough memory for this (CUDA out of memory. Tried to allocate 2 GiB.)",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "stopped; go on"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_kind_of_failure_has_its_code_and_one_sentence(error, code, sentence, capsys):
    with pytest.raises(typer.Exit) as raised, plainly(stopped="stopped; go on"):
        raise error
    assert raised.value.exit_code == code
    assert capsys.readouterr() == ("", sentence + "\n")


def test_a_full_disk_is_told_apart_inside_other_errors_too(capsys):
    with pytest.raises(typer.Exit) as raised, plainly():
        raise FolderError(Path("run"), "cannot be written") from OSError(ENOSPC, "no space left on device")
    assert raised.value.exit_code == FAILED
    assert capsys.readouterr() == ("", "run: cannot be written\n")


@pytest.mark.parametrize("error", [KeyError("bug"), RuntimeError("mat1 and mat2 cannot be multiplied")])
def test_a_mistake_of_the_program_is_not_hidden(error):
    with pytest.raises(type(error)), plainly():
        raise error


def test_memory_that_torch_cannot_have_is_told(capsys):
    with pytest.raises(typer.Exit) as raised, plainly():
        torch.empty(2**60)
    assert raised.value.exit_code == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("there is not enough memory for this (")


def test_an_exit_within_stays_what_it_is():
    with pytest.raises(typer.Exit) as raised, plainly():
        raise typer.Exit(7)
    assert raised.value.exit_code == 7


LEAVING = """
import atexit, sys, threading, time
from corrvae.cli.exits import leave

class Remains:
    def __del__(self):
        print("taken down")

remains = Remains()
atexit.register(print, "at the end")
print("done")
if sys.argv[1] == "with a thread":
    threading.Thread(target=lambda: (time.sleep(0.3), print("waited for"))).start()
leave(SystemExit(eval(sys.argv[2])))
"""


def left(how, code, **options):
    command, buffered = [sys.executable, "-c", LEAVING, how, code], {**os.environ, "PYTHONUNBUFFERED": ""}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, env=buffered, text=True, **streams)


@pytest.mark.parametrize("code", ["None", "0", "3"])
def test_the_process_ends_with_its_code_after_what_is_to_be_done_and_nothing_is_taken_down(code):
    ended = left("alone", code)
    assert (ended.returncode, ended.stdout, ended.stderr) == (eval(code) or 0, "done\nat the end\n", "")


def test_python_ends_the_process_itself_where_there_is_more_to_it():
    waited = left("with a thread", "3")
    assert (waited.returncode, waited.stdout) == (3, "done\nwaited for\nat the end\ntaken down\n")
    spoken = left("alone", "'a sentence'")
    assert (spoken.returncode, spoken.stderr) == (1, "a sentence\n")
    reader, writer = os.pipe()
    os.close(reader)
    assert left("alone", "0", stdout=writer).returncode == 120  # Python's code for output that is lost
    os.close(writer)
