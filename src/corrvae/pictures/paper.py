"""What the three tasks are called and measured by, and what the paper reports of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from corrvae.experiments.published import TASKS

Published = Mapping[str, Mapping[str, float]]


@final
@dataclass(frozen=True)
class Task:
    """A task for people.

    Attributes
    ----------
    title, question
        What it is called and what it asks.
    score, measure
        The name of its main score in a record, and for people.
    paper_data
        What the paper's numbers were measured on.
    """

    title: str
    question: str
    score: str | None
    measure: str
    paper_data: str


_TASKS = {
    "matching": Task(
        "Matching",
        "Each user's ratings are cut into two halves: which half belongs to which?",
        "reciprocal_rank",
        "reciprocal rank",
        "MovieLens-20M",
    ),
    "clustering": Task(
        "Clustering",
        "Do clusters of the embedding find the groups that the synthetic tree was made of?",
        "nmi",
        "normalised mutual information",
        "the synthetic tree",
    ),
    "links": Task(
        "Links",
        "Who trusts whom on Epinions? Held-out links are ranked among all candidates.",
        "ncrr",
        "normalised cumulative reciprocal rank",
        "Epinions",
    ),
}


@final
@dataclass(frozen=True)
class Recipe:
    """A recipe for people: what it is called, and a sentence on it."""

    title: str
    sentence: str


_RECIPES = {
    "recommended": Recipe("Recommended recipe", "What we advise, with settings chosen on validation data."),
    "paper": Recipe("The paper's settings", "Trained with the settings that the paper gives."),
    "quick": Recipe("Quick look", "The same code on small data: not to be held against the paper's numbers."),
}


def paper_numbers(published: Published | None = None) -> Published:
    """The paper's main score of each model, by task: those given, else the ones that the experiments know.

    Examples
    --------
    >>> paper_numbers()["links"]["corr"]
    0.0171
    """
    if published is not None:
        return published
    return {name: {model: one.mean for model, one in task.published.items()} for name, task in TASKS.items()}


def describe_task(name: str) -> Task:
    """How a report speaks of a task; one that it does not know is called by its name.

    Examples
    --------
    >>> describe_task("clustering").score
    'nmi'
    """
    return _TASKS.get(name) or Task(name.capitalize(), "", None, "score", "its own data")


def describe_recipe(name: str) -> Recipe:
    """How a report speaks of a recipe; one that it does not know is called by its name.

    Examples
    --------
    >>> describe_recipe("paper").title
    "The paper's settings"
    """
    return _RECIPES.get(name) or Recipe(f"Recipe: {name}", "")
