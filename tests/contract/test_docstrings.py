"""Every public name has a docstring; what users import from `corrvae` has an example, which pytest runs."""

import doctest
import inspect
import re

import pytest

import corrvae
from support.public import public_methods, public_things

THINGS = public_things() | public_methods()
FORBIDDEN = r"\b(climb|lead_back|settle|go_on|goes on|mention_|refuse_|told_as_|heed|takes up|is told|are welcome)\b"


def documentation(thing):
    return inspect.cleandoc(thing.__doc__ or "")


def test_the_list_is_not_empty_by_mistake():
    assert {"corrvae.CorrelatedVAE", "corrvae.CorrelatedVAE.match", "corrvae.graphs.split_edges"} <= THINGS.keys()
    assert len(THINGS) > 80


@pytest.mark.parametrize("name", sorted(THINGS))
def test_public_names_have_a_docstring_whose_first_line_is_a_sentence(name):
    assert documentation(THINGS[name]).partition("\n")[0].endswith(".")
    assert not re.search(FORBIDDEN, documentation(THINGS[name]))


@pytest.mark.parametrize("name", corrvae.__all__)
def test_what_users_import_has_an_example(name):
    text = documentation(getattr(corrvae, name))
    assert "\nExamples\n--------\n" in text
    examples = doctest.DocTestParser().get_examples(text)
    assert examples
    assert not any(doctest.SKIP in example.options for example in examples)


def listed(thing):
    """Names in the list of parameters of a docstring; None if it has no such list."""
    _, found, rest = documentation(thing).partition("Parameters\n----------\n")
    lines = [line for line in re.split(r"\n\n[A-Z]\w+\n-+\n", rest)[0].splitlines() if line and line[0] != " "]
    return {word for line in lines for word in line.split(" :")[0].split(", ")} if found else None


# What `CorrelatedVAE` explains once for all its methods.
COMMON = {"X", "graph", "ids", "metric", "progress", "random_state"}
WITH_PARAMETERS = {name: thing for name, thing in THINGS.items() if inspect.isfunction(thing) and listed(thing)}
WITH_PARAMETERS |= {f"corrvae.{name}": getattr(corrvae, name) for name in ("CorrelatedVAE", "Pairwise")}


@pytest.mark.parametrize("name", sorted(WITH_PARAMETERS))
def test_a_list_of_parameters_names_them_all(name):
    thing = WITH_PARAMETERS[name]
    explained = COMMON if name.startswith("corrvae.CorrelatedVAE.") else set()
    parameters = set(inspect.signature(thing).parameters) - {"self"}
    assert parameters - explained <= listed(thing) <= parameters


def test_common_parameters_are_explained_by_the_class():
    notes = documentation(corrvae.CorrelatedVAE).partition("Notes\n-----\n")[2]
    assert all(f"`{name}`" in notes for name in COMMON)
