"""The examples in README and docs run as they stand, links lead somewhere, and the reference has every public name."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.documents import Block, blocks_of
from support.public import public_things

ROOT = Path(__file__).parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
DOCUMENTS = [README, *sorted(DOCS.rglob("*.md"))]
LISTED = [DOCS / name for name in re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_page_is_in_the_menu():
    assert sorted(LISTED) == sorted(set(DOCUMENTS) - {README})


def test_examples_and_commands_run_page_after_page(tmp_path):
    # one session: later pages use the files and the run of the first
    session = [sys.executable, "-W", "error", str(ROOT / "tests" / "support" / "documents.py")]
    run = subprocess.run([*session, *map(str, [*LISTED, README])], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-5000:]
    assert (tmp_path / "run.html").is_file()
    settings = next(block.text for block in blocks_of((DOCS / "commands.md").read_text()) if block.language == "toml")
    kept = tomllib.loads((tmp_path / "settings-run" / "run.toml").read_text())
    given = tomllib.loads(settings)
    paths = {name: str(tmp_path / given[name]) for name in ("features", "graph")}
    expected = {**given, **paths, "steps": 20}
    assert {name: kept[name] for name in expected} == expected


def test_the_commands_that_matter_are_on_some_page():
    commands = [c for page in DOCUMENTS for block in blocks_of(page.read_text()) for c in block.commands]
    asked = ["fit", "info", "embed", "neighbors", "links", "match", "cluster", "score", "plot", "weights", "reproduce"]
    assert {command.split()[1] for command in commands} >= set(asked)


def test_a_block_gives_its_commands():
    text = "make demo\ncorrvae fit --out run \\\n  --steps 3   # a comment\n$ corrvae data get ml-1m\n$ python x.py\n"
    assert Block(1, "sh", text).commands == ["corrvae fit --out run    --steps 3", "python x.py"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_between_documents_lead_somewhere(document):
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", prose):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_documents_name_are_there(document):
    for named in re.findall(r"`((?:examples|benchmarks|results)/[^`*]*)`", document.read_text()):
        assert named.startswith("results/TASK") or named == "results/.partial" or (ROOT / named).exists(), named


def test_the_readme_names_its_two_commands_and_they_exist():
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", README.read_text(), re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_the_reference_has_every_public_name():
    shown = set(re.findall(r"^::: (\S+)$", (DOCS / "reference.md").read_text(), re.MULTILINE))
    public = public_things()
    places = {}
    for name, thing in public.items():
        places.setdefault((thing.__module__, thing.__qualname__), []).append(name)
    missing = [names for names in places.values() if not shown & set(names)]
    assert missing == []
