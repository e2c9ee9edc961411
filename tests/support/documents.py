"""The examples in README and docs: blocks of Python and of commands, run in their order in the current folder.

Commands of ``corrvae`` run in this process; those that download, take long or start processes are only parsed. Other
lines (``make``, ``source``) are for the reader. A block of TOML is the file that its first line names. Blocks in
comments run too: they make files that the reader would have.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from corrvae.cli import app

_BLOCK = re.compile(r"^```(python|sh|toml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PARSED_ONLY = ("data get", "data list", "demo", "reproduce", "report")


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """Return where each block of a page begins, its language and its text."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield f"{page.name}, line {text.count(chr(10), 0, found.start()) + 1}", found[1], found[2]


def commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """Return the arguments of each command of corrvae in a block, and whether it is to be run.

    Examples
    --------
    >>> list(commands("make demo\\ncorrvae info run/  # a look\\ntorchrun --nproc-per-node 2 -m corrvae fit a.csv\\n"))
    [(['info', 'run/'], True), (['fit', 'a.csv'], False)]
    """
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"(torchrun .* -m )?corrvae (.*)", line)
        if found:
            arguments = shlex.split(found[2], comments=True)
            yield arguments, not found[1] and not found[2].startswith(_PARSED_ONLY)


def run_page(page: Path) -> None:
    """Run the blocks of a page; an error names the block."""
    namespace = {"__name__": page.stem}
    for where, language, text in blocks(page):
        try:
            if language == "python":
                exec(compile(text, where, "exec"), namespace)
            elif language == "toml":
                Path(text.split()[1]).write_text(text, encoding="utf-8")
            else:
                for arguments, to_run in commands(text):
                    _run(arguments) if to_run else _parse(arguments)
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{where}: {error!r}") from error


def _run(arguments: list[str]) -> None:
    try:
        app(arguments, prog_name="corrvae")
    except SystemExit as ended:
        if ended.code:
            raise


def _parse(arguments: list[str]) -> None:
    """Raise if there is no such command, argument or option."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        name, *arguments = arguments
        command = command.commands[name]
    command.make_context(command.name, arguments)
