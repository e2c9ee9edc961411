"""The order of the rooms: a room imports only from those before it, directly or inside functions."""

import ast
from pathlib import Path

import pytest

import corrvae

PACKAGE = Path(__file__).parents[2] / "src" / "corrvae"
ORDER = (
    "errors",
    "graphs",
    "io",
    "nn",
    "model",
    "training",
    "scoring",
    "data",
    "choices",
    "saving",
    "estimator",
    "datasets",
    "plots",
    "experiments",
    "cli",
)
SIMPLE = {"__version__"}
FREE = ("__init__", "__main__")  # the face of the package and its program
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a module imports anywhere in its code, lazily or for type checking too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it goes"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    rooms = {name.split(".")[1] for name in names if name.startswith("corrvae.")}
    # what is imported from the package itself is made in some room, too
    return {room if room in ORDER else getattr(corrvae, room).__module__.split(".")[1] for room in rooms - SIMPLE}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_from_rooms_before_its_own(path):
    room = room_of(path)
    if room in FREE:
        return
    later = ORDER[ORDER.index(room) + 1 :]
    assert imported_rooms(path) & set(later) == set()


def test_the_order_names_every_room_and_nothing_else():
    rooms = {room_of(path) for path in MODULES} - set(FREE)
    assert rooms == set(ORDER)


def test_few_modules_stand_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_every_room_says_what_it_is_for():
    for folder in {path.parent for path in MODULES}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))), folder


FORBIDDEN = ("Give", "Say", "Tell", "Refuse", "Let", "Lead", "Mention")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_docstrings_begin_with_words_of_the_field(path):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kinds):
            first = (ast.get_docstring(node) or "").partition(" ")[0]
            assert first not in FORBIDDEN, f"{path.name}: {node.name}"
