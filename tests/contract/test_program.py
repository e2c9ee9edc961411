"""The program as it was installed: the script beside this Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import corrvae


@pytest.fixture
def program(tmp_path):
    """Start the script in a temporary folder."""
    script = shutil.which("corrvae", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip(f"there is no script corrvae beside {sys.executable}: the package is not installed")
    source = str(Path(corrvae.__file__).parent.parent)

    def start(*arguments, **variables):
        environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run([script, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return start


def test_the_script_tells_its_version_and_what_is_wrong(program):
    assert program("--version").stdout == f"{corrvae.__version__}\n"
    wrong = program("fit", "--nope")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.endswith("; corrvae fit --help tells what there is\n")
    assert len(wrong.stderr.splitlines()) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(program, shell):
    shown = program(_CORRVAE_COMPLETE=f"source_{shell}")
    assert shown.returncode == 0, shown.stderr
    assert "_CORRVAE_COMPLETE" in shown.stdout


def test_a_command_is_completed(program):
    found = program(_CORRVAE_COMPLETE="complete_bash", COMP_WORDS="corrvae nei", COMP_CWORD="1")
    assert found.stdout.split() == ["neighbors"]


def test_ctrl_c_while_the_program_starts_is_answered():
    """The signal comes while the first module of the command line is being read."""
    script = """
import signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "corrvae.cli.application":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Stop())
from corrvae.__main__ import run
run()
"""
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "stopped\n")


REMAINS = """
import sys
from corrvae.__main__ import {0}

class Remains:
    def __del__(self):
        print("taken down")

remains, sys.argv = Remains(), ["corrvae", "--version"]
try:
    {0}()
except SystemExit as ended:
    print("caller goes on", ended.code)
"""


def test_the_program_takes_nothing_down_and_a_caller_of_the_command_line_goes_on():
    program, call = (
        subprocess.run([sys.executable, "-c", REMAINS.format(name)], capture_output=True, text=True)
        for name in ("run", "main")
    )
    assert (program.returncode, program.stdout, program.stderr) == (0, f"{corrvae.__version__}\n", "")
    assert call.stdout == f"{corrvae.__version__}\ncaller goes on 0\ntaken down\n"


def test_the_program_can_be_profiled(tmp_path):
    profile = tmp_path / "profile"
    command = [sys.executable, "-m", "cProfile", "-o", str(profile), "-m", "corrvae", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == f"{corrvae.__version__}\n"
    assert profile.stat().st_size > 0


def first_word(words, stdout):
    buffered = {**os.environ, "PYTHONUNBUFFERED": "", "PYTHONPATH": str(Path(corrvae.__file__).parent.parent)}
    command = [sys.executable, "-m", "corrvae", *words]
    return subprocess.run(command, env=buffered, stdout=stdout, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("fit", "--help")])
def test_a_reader_who_has_seen_enough_is_no_failure_and_a_full_disk_is_one(words):
    reader, writer = os.pipe()
    os.close(reader)
    ended = first_word(words, writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            ended = first_word(words, full)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (3, 1)
