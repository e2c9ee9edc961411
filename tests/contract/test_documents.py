"""The examples in README and docs run, links and files exist, the reference has every public name."""

import importlib
import re
from pathlib import Path

import pytest

from support.documents import blocks, commands, run_page

ROOT = Path(__file__).parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAVIGATION = [DOCS / name for name in re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))  # each needs only what it makes itself
ROOMS = ("corrvae", "corrvae.graphs", "corrvae.io", "corrvae.nn", "corrvae.training", "corrvae.scoring")
COMMANDS = (
    "fit info embed neighbors recommend similar links match cluster score plot weights data reproduce report explore"
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    names = re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings} | {*names}


def test_every_page_is_in_the_navigation():
    assert sorted(NAVIGATION) == PAGES


def test_examples_of_the_docs_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for page in NAVIGATION:  # later pages use files of earlier ones
        if page not in TUTORIALS:
            run_page(page)
    assert (tmp_path / "run.html").is_file()


@pytest.mark.parametrize("page", TUTORIALS, ids=name_of)
def test_examples_of_a_tutorial_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_examples_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(README)
    assert (tmp_path / "neighbors.csv").is_file()


def test_every_command_is_on_some_page():
    shell = [text for page in PAGES for _, language, text in blocks(page) if language == "sh"]
    assert {arguments[0] for text in shell for arguments, _ in commands(text)} == set(COMMANDS.split())


@pytest.mark.parametrize("document", [README, ROOT / "CONTRIBUTING.md", *PAGES], ids=name_of)
def test_links_and_files_exist(document):
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose):
        page = document.parent / target if target else document
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"
    for named in re.findall(r"`((?:benchmarks|examples|results|src|tests)/[^`*]*)`", prose):
        assert "TASK" in named or (ROOT / named).exists(), named


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_has_every_public_name(room):
    shown = re.findall(r"^::: \S+\.(\w+)$", (DOCS / "reference.md").read_text(), re.MULTILINE)
    module = importlib.import_module(room)
    exported = re.findall(r"^ *from .* import (\w+) as \1$", Path(str(module.__file__)).read_text(), re.MULTILINE)
    assert exported
    assert sorted(set(exported) - set(shown)) == []
