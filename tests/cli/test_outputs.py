import json
import os
import stat
import warnings
from errno import ENOSPC

import numpy as np
import pytest

from corrvae.answers.tables import AnswerTable
from corrvae.cli.outputs import Output, to_stdout, warnings_said
from corrvae.errors import FolderError

TABLE = AnswerTable({"id": np.array([1, 2])}, {"route": "by hand"})


def test_a_table_goes_to_stdout(capsys):
    Output().give(TABLE)
    assert capsys.readouterr() == ("id\n1\n2\n", "")
    Output(as_json=True).give(TABLE)
    assert json.loads(capsys.readouterr().out) == {"route": "by hand", "rows": [{"id": 1}, {"id": 2}]}


def test_a_table_goes_to_a_file_which_is_told_on_stderr(tmp_path, capsys):
    out = tmp_path / "t.csv"
    Output(out).give(TABLE)
    assert capsys.readouterr() == ("", f"2 rows are in {out}\n")
    Output(out, quiet=True).give(TABLE)
    assert capsys.readouterr() == ("", "")
    assert out.read_text() == "id\n1\n2\n"


def test_endings_are_checked_beforehand(tmp_path):
    Output(tmp_path / "t.csv").check()
    Output().check()
    with pytest.raises(FolderError, match="must end in"):
        Output(tmp_path / "t.csv").check(".html", ".png")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_needs_no_ending_and_gets_the_table(tmp_path):
    out = tmp_path / "pipe"
    os.mkfifo(out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    try:
        Output(out).check()
        Output(out, quiet=True).give(TABLE)
        assert os.read(reader, 100) == b"id\n1\n2\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(out.stat().st_mode)


def test_a_quiet_command_shows_no_bar():
    assert (Output(quiet=True).progress, Output().progress) == (False, None)


def test_warnings_are_said_in_their_own_words():
    said = []
    with warnings_said(said.append):
        warnings.warn("12 items were left out", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert said == ["12 items were left out"]


def test_warnings_are_said_before_an_error_too():
    said = []

    def fail():
        with warnings_said(said.append):
            warnings.warn("12 items were left out", UserWarning, stacklevel=1)
            raise ValueError("no items are left")

    with pytest.raises(ValueError, match="no items"):
        fail()
    assert said == ["12 items were left out"]


@pytest.mark.parametrize(("filename", "told"), [(None, "standard output"), ("x.csv", "x.csv")])
def test_what_could_not_be_written_is_named(filename, told):
    with pytest.raises(OSError, match="No space") as raised, to_stdout():
        raise OSError(ENOSPC, "No space left on device", filename)
    assert (raised.value.errno, raised.value.filename) == (ENOSPC, told)
