import errno
import os
import subprocess
import sys
import warnings

import pytest
import typer
from typer.testing import CliRunner

import corrvae
from corrvae.cli import app, command
from corrvae.cli.app import BAD_INPUT, FAILED, INTERRUPTED, notify
from corrvae.errors import CorrvaeError, DataFileError, FolderError, TrainingError
from support.commands import run
from support.runs import make_files

COMMANDS = ["fit", "embed", "neighbors", "links", "match", "cluster", "score", "info", "plot", "weights", "demo"]
COMMANDS += ["reproduce", "report", "data get", "data list", "data convert", "data example", "explore"]


def program(*arguments, **options):
    """Run the program in a process of its own."""
    command = [sys.executable, "-m", "corrvae", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name):
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert f"Example: corrvae {name}" in " ".join(result.output.split())


def test_help_imports_nothing_heavy():
    heavy = {"torch", "sklearn", "scipy", "numpy", "numba", "matplotlib", "pyarrow", "jinja2"}
    code = f"import sys, corrvae.cli; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert found.stdout == "[]\n"


def test_the_program_has_a_name_a_version_and_a_code():
    result = program("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{corrvae.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "No such command 'nonsense'; see corrvae --help"),
        (["--nonsense"], "No such option: --nonsense"),
        (["info"], "Missing argument 'RUN'; see corrvae info --help"),
        (["links", "run", "--top", "0"], "Invalid value for '--top'"),
        (["fit", "a.csv", "--out", "run", "--hidden", "3,x"], "Invalid value for '--hidden'"),
    ],
)
def test_wrong_use_is_one_sentence(arguments, sentence):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (BAD_INPUT, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(sentence)


@pytest.fixture
def failing():
    """Add a command from outside of the package that does what it is told; remove it afterwards."""

    def add(act):
        @command()
        def outside() -> None:
            """Do what the test wants."""
            act()

        return run("outside")

    before = list(app.registered_commands)
    yield add
    app.registered_commands[:] = before


def raiser(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ValueError("tau must be between -1 and 1"), BAD_INPUT, "tau must be between -1 and 1"),
        (TypeError("a graph is\nneeded"), BAD_INPUT, "a graph is needed"),
        (DataFileError("edges.csv", "there is one field", 3), BAD_INPUT, "edges.csv, line 3: there is one field"),
        (FolderError("run", "there is no such folder"), BAD_INPUT, "run: there is no such folder"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x.csv"), BAD_INPUT, "x.csv: no such file"),
        (PermissionError(errno.EACCES, "Permission denied", b"x.csv"), BAD_INPUT, "x.csv: permission denied"),
        (OSError("nobody answers"), BAD_INPUT, "nobody answers"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), FAILED, "x: the disk is full"),
        (TrainingError(7, "edge"), FAILED, str(TrainingError(7, "edge"))),
        (CorrvaeError("another worker ended"), FAILED, "another worker ended"),
        (MemoryError(), FAILED, "there is not enough memory for this"),
        (RuntimeError("CUDA out of memory.\nSee"), FAILED, "there is not enough memory for this (CUDA out of memory.)"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
    ],
)
def test_an_error_is_a_sentence_and_a_code(error, code, sentence, failing):
    result = failing(raiser(error))
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", f"{sentence}\n")


def test_a_full_disk_behind_another_error_is_known_by_its_code(failing):
    error = FolderError("run", "cannot be written (the disk is full)")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert failing(raiser(error)).exit_code == FAILED


def test_a_bug_is_not_hidden(failing):
    result = failing(raiser(ZeroDivisionError("division by zero")))
    assert isinstance(result.exception, ZeroDivisionError)


def test_a_command_from_outside_speaks_and_warns(failing):
    def act():
        notify("working")
        warnings.warn("row 3 is empty", stacklevel=1)
        typer.echo("done")

    result = failing(act)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "done\n", "working\nrow 3 is empty\n")
    quiet = run("outside", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("done\n", "")


def test_a_log_that_cannot_be_written_ends_nothing(failing, monkeypatch):
    echo = typer.echo

    def broken(message, err=False):
        if err:
            raise BrokenPipeError
        echo(message)

    def act():
        notify("working")
        typer.echo("done")

    monkeypatch.setattr(typer, "echo", broken)
    result = failing(act)
    assert (result.exit_code, result.stdout) == (0, "done\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of a Unix shell")
def test_a_reader_who_leaves_early_is_no_error(tmp_path):
    files = make_files(tmp_path)
    # 36 points with 35 neighbours each fill more than the buffer of a pipe
    command = f'"{sys.executable}" -m corrvae neighbors "{files.run}" -k 35 | head -n 1; echo "${{PIPESTATUS[0]}}"'
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=True)
    assert result.stderr == ""
    first, code = result.stdout.splitlines()
    assert first.startswith("query,rank,neighbor,score")
    assert code == "0"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")  # noqa: PTH110
def test_an_answer_that_cannot_be_written_is_one_sentence(tmp_path):
    files = make_files(tmp_path)
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "corrvae", "embed", str(files.run)]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert (result.returncode, result.stderr) == (FAILED, "the disk is full\n")


def test_workers_other_than_the_first_are_silent(failing, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("RANK", "1")
    assert failing(raiser(ValueError("bad"))).stderr == ""
    lost = failing(raiser(CorrvaeError("another worker of this run ended")))
    assert lost.stderr == "another worker of this run ended\n"


def test_results_do_not_depend_on_the_terminal():
    assert CliRunner().invoke(app, ["--version"], color=True).stdout == f"{corrvae.__version__}\n"


def test_without_typer_the_command_line_is_one_sentence():
    script = "import sys; sys.modules['typer'] = None; from corrvae.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'the command line needs more packages: pip install "corrvae[cli]"\n'
