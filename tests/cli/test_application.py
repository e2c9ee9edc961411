import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import corrvae
from corrvae.cli import app

ASKING = ["fit", "embed", "neighbors", "links", "match", "cluster", "score", "weights", "info", "plot"]
COMMANDS = [*ASKING, "demo", "report", "reproduce", "data"]


def test_help_lists_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    listed = re.findall(r"^│ ([a-z]+) ", result.output, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("command", [[name] for name in COMMANDS if name != "data"] + [["data", "get"]])
def test_help_of_every_command_has_an_example(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert re.search(rf"Examples?:\s+corrvae {' '.join(command)} ", result.output)


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_help_is_shown_where_no_command_is_given(arguments):
    result = CliRunner().invoke(app, arguments, prog_name="corrvae")
    assert (result.exit_code, result.stderr.strip()) == (2, "")
    assert result.stdout.split()[:2] == ["Usage:", "corrvae"]


@pytest.mark.parametrize(
    ("arguments", "named", "command"),
    [
        (["fit", "--nope"], "--nope", "corrvae fit"),
        (["fit"], "--out", "corrvae fit"),
        (["links"], "RUN", "corrvae links"),
        (["info", "run", "more"], "more", "corrvae info"),
        (["nope"], "nope", "corrvae"),
        (["data", "nope"], "nope", "corrvae data"),
    ],
)
def test_wrong_use_is_one_sentence(arguments, named, command):
    result = CliRunner().invoke(app, arguments, prog_name="corrvae")
    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert named in sentence
    assert sentence.endswith(f"; {command} --help tells what there is")


@pytest.mark.parametrize("arguments", [["links", "run", "--top", "many"], ["links", "run", "--top", "0"]])
def test_a_wrong_value_names_its_option(arguments):
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "--top" in result.stderr


def test_a_caller_may_have_the_error_itself():
    program = typer.main.get_command(app)
    with pytest.raises(typer.BadParameter):
        program.main(["links", "run", "--top", "0"], standalone_mode=False)
    assert program.main(["--version"], standalone_mode=False) in (None, 0)


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, corrvae.__version__)


def test_help_imports_nothing_heavy():
    """Help must answer at once, so it may not wait for these."""
    script = f"""
import sys
from corrvae.cli import app
for command in ([], ["data", "get"], *([name] for name in {COMMANDS!r})):
    try:
        app([*command, "--help"])
    except SystemExit as end:
        assert not end.code, command
    heavy = ("torch", "numba", "sklearn", "scipy", "numpy", "pyarrow", "matplotlib")
    print("loaded", command, [name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert len(loaded) == len(COMMANDS) + 2
    assert [line for line in loaded if not line.endswith(" []")] == []


def test_the_package_runs_as_a_module():
    program = [sys.executable, "-m", "corrvae"]
    done = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == corrvae.__version__
    done = subprocess.run([*program, "fit", "--nope"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert "--nope" in sentence


def test_ctrl_c_before_a_command_cares_for_it_is_answered_too(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("corrvae.cli.fit.heed_termination", stop)
    result = CliRunner().invoke(app, ["fit", "--out", "run"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "stopped\n")
