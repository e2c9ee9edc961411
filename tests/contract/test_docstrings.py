"""Every public name has a docstring with an example; pytest runs the examples, since it collects doctests from src."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import corrvae
from corrvae import CorrelatedVAE, errors


def public_things() -> Iterator[tuple[str, Any]]:
    """Classes and functions that a package exports, the errors, and what a `CorrelatedVAE` can do, by full name."""
    packages = ["corrvae", *(m.name for m in pkgutil.walk_packages(corrvae.__path__, "corrvae.") if m.ispkg)]
    for package in packages:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            yield f"{package}.{name}", getattr(module, name)
    for name, thing in vars(errors).items():
        if getattr(thing, "__module__", None) == errors.__name__:
            yield f"{errors.__name__}.{name}", thing
    for name, method in inspect.getmembers(CorrelatedVAE, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("corrvae"):  # the others are scikit-learn's
            yield f"corrvae.CorrelatedVAE.{name}", method


# An alias of a type and a dictionary have no docstring of their own.
THINGS = {name: thing for name, thing in public_things() if inspect.isclass(thing) or inspect.isfunction(thing)}


def examples_of(thing: Any) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(thing.__doc__ or "")


def test_the_list_is_not_empty_by_mistake():
    assert {"corrvae.CorrelatedVAE", "corrvae.CorrelatedVAE.match", "corrvae.graphs.split_edges"} <= THINGS.keys()
    assert len(THINGS) > 100


@pytest.mark.parametrize("name", THINGS)
def test_public_names_have_a_docstring(name):
    documentation = inspect.cleandoc(THINGS[name].__doc__ or "")
    assert documentation.partition("\n")[0].endswith("."), "the first line is not a sentence"


@pytest.mark.parametrize("name", THINGS)
def test_public_names_have_an_example_that_runs(name):
    documentation = inspect.cleandoc(THINGS[name].__doc__ or "")
    examples = examples_of(THINGS[name])
    assert "\nExamples\n--------\n" in documentation
    assert examples
    assert not any(doctest.SKIP in example.options for example in examples)
