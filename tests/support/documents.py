"""The examples of the documentation as one session: pages in their order, in one folder, in one process.

Blocks of Python run in a namespace of their page. Of the blocks of commands, lines that begin with ``corrvae`` or
``python`` are run; the others are for the reader (``make``, ``source``). A block of TOML is settings: a model is
trained with them for a few steps. Blocks in comments are run too: they make the files that the reader would have.
"""

import contextlib
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(python|sh|bash|console|toml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# What would be downloaded, what takes minutes and is tested elsewhere, and what needs several processes.
_LEFT_OUT = ("corrvae data get", "corrvae demo", "python examples/", "torchrun")
# The quickest model of each experiment.
_QUICK = {"clustering": "pca", "links": "degree", "matching": "lsa"}


@dataclass(frozen=True)
class Block:
    """A block of a page: where it begins, what language it is in, and what it says."""

    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands in it that are run, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        plain = (re.sub(r"\s+#.*", "", line).removeprefix("$ ").strip() for line in lines)
        wanted = ("corrvae ", "python ")
        return [line for line in plain if line.startswith(wanted) and not line.startswith(_LEFT_OUT)]


def blocks_of(page: str) -> Iterator[Block]:
    """Give the blocks of a page in their order.

    Examples
    --------
    >>> [block.commands for block in blocks_of("```sh\\nmake demo\\ncorrvae info run/  # a look\\n```\\n")]
    [['corrvae info run/']]
    """
    for found in _FENCE.finditer(page):
        yield Block(page.count("\n", 0, found.start()) + 1, found[1], found[2])


def run_command(command: str) -> None:
    """Run a command, `corrvae` in this process: a start of its own would take seconds."""
    program, *arguments = shlex.split(command)
    if program == "python":
        subprocess.run([sys.executable, *arguments], check=True)
        return
    from corrvae.cli import app

    if arguments[0] == "reproduce":
        _check_options(arguments)
        quickest = ["--models", _QUICK[arguments[1]], "--seeds", "1", "--quick"]
        arguments = [*arguments[:2], *quickest]
    try:
        app(arguments, prog_name="corrvae")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{command} ended with exit code {end.code}") from end


def fit_with(settings: str) -> None:
    """Train a few steps with settings from a file; options win, so that all others are those of the page."""
    Path("settings.toml").write_text(settings, encoding="utf-8")
    run_command("corrvae fit --config settings.toml --out settings-run/ --steps 20 --overwrite --quiet")


def _check_options(arguments: list[str]) -> None:
    """Refuse options that there are not, without doing what they ask for."""
    import typer

    from corrvae.cli import app

    group = typer.main.get_command(app)
    group.commands[arguments[0]].make_context(arguments[0], arguments[1:])  # pyright: ignore[reportAttributeAccessIssue]


def run_pages(pages: list[Path]) -> int:
    """Run pages until something fails; tell where that was."""
    for page in pages:
        namespace = {"__name__": "__main__"}
        folder = Path(page.parent.name if page.name == "README.md" else ".")  # a README stands by itself
        folder.mkdir(exist_ok=True)
        with contextlib.chdir(folder):
            for block in blocks_of(page.read_text(encoding="utf-8")):
                where = f"{page}, line {block.line}"
                try:
                    run_block(block, where, namespace)
                except BaseException:
                    traceback.print_exc()
                    print(f"{where}: this block does not run", file=sys.stderr)
                    return 1
    return 0


def run_block(block: Block, where: str, namespace: dict[str, object]) -> None:
    """Run a block: Python in the namespace of its page, commands one by one."""
    if block.language == "python":
        exec(compile(block.text, where, "exec"), namespace)
        return
    if block.language == "toml":
        fit_with(block.text)
        return
    for command in block.commands:
        print(f"$ {command}", flush=True)
        run_command(command)


if __name__ == "__main__":
    raise SystemExit(run_pages([Path(argument) for argument in sys.argv[1:]]))
