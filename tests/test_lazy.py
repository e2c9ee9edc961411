import importlib
import sys

import pytest

from corrvae._lazy import attach

PACKAGE = """
from corrvae._lazy import attach

__getattr__, __dir__ = attach(__name__, {"answer": ".sums", "ask": ".words", "gone": ".words"})
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two modules, of which nothing has been imported."""
    home = tmp_path / "lazy_example"
    home.mkdir()
    (home / "__init__.py").write_text(PACKAGE)
    (home / "sums.py").write_text("answer = 42\n")
    (home / "words.py").write_text("def ask():\n    return 'why?'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazy_example")
    for name in [name for name in sys.modules if name.startswith("lazy_example")]:
        del sys.modules[name]


def test_a_module_is_imported_when_its_name_is_used(package):
    assert "lazy_example.sums" not in sys.modules
    assert package.answer == 42
    assert "lazy_example.sums" in sys.modules
    assert "lazy_example.words" not in sys.modules
    namespace = {}
    exec("from lazy_example import ask", namespace)
    assert namespace["ask"]() == "why?"


def test_names_are_listed_before_they_are_used(package):
    assert dir(package) == ["answer", "ask", "gone"]
    assert "lazy_example.sums" not in sys.modules


def test_an_unknown_name_gets_pythons_own_sentence(package):
    with pytest.raises(AttributeError, match="module 'lazy_example' has no attribute 'question'"):
        _ = package.question
    assert not hasattr(package, "question")
    with pytest.raises(ImportError, match="cannot import name 'question'"):
        exec("from lazy_example import question")


def test_a_name_missing_from_its_home_says_so(package):
    with pytest.raises(AttributeError, match=r"module 'lazy_example\.words' has no attribute 'gone'"):
        _ = package.gone


def test_absolute_homes_do_as_well():
    get, names = attach("anything", {"sqrt": "math"})
    assert get("sqrt")(9.0) == 3.0
    assert names() == ["sqrt"]
