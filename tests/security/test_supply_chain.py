"""What comes along with corrvae: few packages, each for a reason that the documentation gives, all freely licensed."""

import importlib.util
import json
import re
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SPECIFICATION = importlib.util.spec_from_file_location("audit", ROOT / "tools" / "audit.py")
audit = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(audit)


def needed() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {Requirement(line).name for line in project["dependencies"]}


def test_every_dependency_is_justified_and_no_other():
    page = (ROOT / "docs" / "promises.md").read_text()
    section = page.partition("## What it rests on")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([\w.-]+)` \|", section, re.MULTILINE)) == needed()


def test_every_dependency_is_pinned_for_those_who_want_what_was_tested():
    pins = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    assert [name for name in needed() if not re.search(rf"^{name.lower()}==", pins, re.MULTILINE)] == []


def test_all_that_comes_along_is_freely_licensed():
    packages = audit.closure(audit.needed())
    names = {package.name for package in packages}
    assert {"numpy", "torch", "pyarrow", "llvmlite"} <= names
    assert {"h5py", "torch-geometric", "usearch"} <= names  # of the extras
    assert not {"corrvae", "pytest", "mkdocs-material"} & names
    assert [package for package in packages if package.verdict == "LOOK AT IT"] == []


def test_every_extra_for_users_is_looked_at():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"].keys() - audit._OF_DEVELOPERS == {"anndata", "baselines", "index"}
    for name in ("anndata", "baselines", "index"):
        assert {*project["optional-dependencies"][name]} <= {*audit.needed()}


def test_what_is_not_installed_is_not_passed_over():
    lines = ["no-such-package>=1", "nor-this; python_version < '3'", "nor-that; extra == 'x'"]
    (missing,) = audit.closure(lines)
    assert (missing.name, missing.verdict) == ("no-such-package", "LOOK AT IT")


def answered(**packages):
    """What pip-audit prints: vulnerabilities of a package, or why it passed over it."""
    entries = [
        {"name": name, "version": "1", "vulns": [{"id": fault} for fault in said]}
        if isinstance(said, list)
        else {"name": name, "skip_reason": said}
        for name, said in packages.items()
    ]
    return json.dumps({"dependencies": entries, "fixes": []})


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (answered(numpy=[], typing_extensions=[]), 0, "no vulnerability is known in 2 packages"),
        (answered(numpy=["CVE-1"], typing_extensions=[]), 1, "vulnerability in numpy: CVE-1"),
        (
            answered(numpy=[], typing_extensions="not found"),
            2,
            "asked about 1 of 2 packages (typing-extensions): nothing",
        ),
        (answered(numpy=[]), 2, "1 of 2 packages (typing-extensions)"),
        ("", 2, "2 of 2 packages (numpy, typing-extensions)"),  # no network: it says so on stderr, and nothing here
        ("[]", 2, "nothing is known of them"),
    ],
)
def test_what_could_not_be_asked_is_not_told_as_safe(answer, code, words, capsys):
    assert audit.judge(answer, {"numpy", "typing-extensions"}) == code
    assert words in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("licence", "verdict"),
    [
        ("MIT", "permissive"),
        ("Apache-2.0 OR GPL-3.0-only", "permissive"),
        ("MIT AND GPL-3.0-only", "LOOK AT IT"),
        ("GNU General Public License v3", "LOOK AT IT"),
        ("LGPL-2.1-or-later", "limited"),
        ("MPL-2.0 AND MIT", "limited"),
        ("ISC License (ISCL)", "permissive"),
        ("not stated", "LOOK AT IT"),
        ("not installed", "LOOK AT IT"),
        ("", "LOOK AT IT"),
        ("MIT and GPL", "LOOK AT IT"),
        ("mit or gpl", "permissive"),
        ("MIT, GPLv3", "LOOK AT IT"),
        ("MIT/AGPL-3.0", "LOOK AT IT"),
        ("MIT OR GPL-3.0-only AND LGPL-3.0-only", "permissive"),
        ("(MIT OR GPL-3.0-only) AND LGPL-3.0-only", "limited"),
        ("MIT AND (GPL-3.0-only OR BSD-3-Clause)", "permissive"),
        ("MIT AND (GPL-3.0-only OR (Foo AND BSD-3-Clause))", "LOOK AT IT"),
        ("MIT) AND GPL-3.0-only", "LOOK AT IT"),
        ("(MIT AND GPL-3.0-only", "LOOK AT IT"),
        ("and MIT", "LOOK AT IT"),
        ("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1", "limited"),
        ("GNU General Public License v2 or later (GPLv2+)", "LOOK AT IT"),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", "limited"),
        ("GNU Affero General Public License v3", "LOOK AT IT"),
        ("Historical Permission Notice and Disclaimer (HPND)", "permissive"),
        ("Mozilla Public License 2.0 (MPL 2.0) AND MIT License", "limited"),
        ("BSD License AND Other/Proprietary License", "LOOK AT IT"),
        ("MIT for non-commercial use", "LOOK AT IT"),
    ],
)
def test_licences_are_told_apart(licence, verdict):
    assert audit.Package("x", "1", licence).verdict == verdict


@pytest.mark.parametrize(
    ("headers", "licence", "verdict"),
    [
        (["License-Expression: MIT", "Classifier: License :: OSI Approved :: BSD License"], "MIT", "permissive"),
        (
            [
                "Classifier: License :: OSI Approved :: MIT License",
                "Classifier: Topic :: Utilities",
                "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)",
            ],
            "MIT License AND GNU General Public License v3 (GPLv3)",
            "LOOK AT IT",
        ),
        (["Classifier: License :: OSI Approved", "License: Apache-2.0"], "Apache-2.0", "permissive"),
        (
            ["Classifier: License :: Other/Proprietary License", "License: MIT"],
            "Other/Proprietary License",
            "LOOK AT IT",
        ),
        (["License: UNKNOWN"], "not stated", "LOOK AT IT"),
    ],
)
def test_all_that_a_package_says_of_its_licence_counts(headers, licence, verdict, tmp_path):
    (tmp_path / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: x", "Version: 1", *headers, ""]))
    found = audit.licence_of(PathDistribution(tmp_path))
    assert found == licence
    assert audit.Package("x", "1", found).verdict == verdict
