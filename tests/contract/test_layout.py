"""How the files lie: tests mirror the package, and a file holds one idea."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "corrvae"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
FILES = sorted(path for folder in ("src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py"))
MOST_LINES = 450


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_every_module_has_a_test_of_its_name(module):
    folder = ROOT / "tests" / module.parent.relative_to(PACKAGE)
    assert (folder / f"test_{module.stem.lstrip('_')}.py").is_file()


def test_every_test_has_its_module():
    mirrored = {ROOT / "tests" / m.parent.relative_to(PACKAGE) / f"test_{m.stem.lstrip('_')}.py" for m in MODULES}
    tests = {path for path in (ROOT / "tests").rglob("test_*.py") if name_of(path).split("/")[1] not in OF_THEIR_OWN}
    assert {name_of(path) for path in tests - mirrored} == set()


OF_THEIR_OWN = ("paper", "contract", "examples", "faults", "security", "numerics")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_is_longer_than_it_should_be(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("folder", sorted({module.parent for module in MODULES}), ids=name_of)
def test_every_folder_says_what_it_is_for(folder):
    assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""')
