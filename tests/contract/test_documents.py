"""The examples in README and docs run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_python_examples_run(document, tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL))
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_the_readme_names_its_two_commands_and_they_exist():
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
