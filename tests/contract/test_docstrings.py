"""Every public name has a docstring with an example; pytest runs the examples, since it collects doctests from src."""

import doctest
import inspect

import pytest

from support.public import exported, public_methods, public_things

THINGS = public_things() | public_methods()


def test_the_list_is_not_empty_by_mistake():
    assert {"corrvae.CorrelatedVAE", "corrvae.CorrelatedVAE.match", "corrvae.graphs.split_edges"} <= THINGS.keys()
    assert len(THINGS) > 100


def test_no_module_takes_the_name_of_what_it_holds():
    assert [name for name, thing in exported() if inspect.ismodule(thing)] == []


@pytest.mark.parametrize("name", THINGS)
def test_public_names_have_a_docstring(name):
    documentation = inspect.cleandoc(THINGS[name].__doc__ or "")
    assert documentation.partition("\n")[0].endswith("."), "the first line is not a sentence"


@pytest.mark.parametrize("name", THINGS)
def test_public_names_have_an_example_that_runs(name):
    documentation = inspect.cleandoc(THINGS[name].__doc__ or "")
    examples = doctest.DocTestParser().get_examples(documentation)
    assert "\nExamples\n--------\n" in documentation
    assert examples
    assert not any(doctest.SKIP in example.options for example in examples)
