"""What the three tasks are called and measured by, and what the paper reports of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from corrvae.experiments.published import CLEAR_RESIDUAL, TASKS

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
    linked, map
        Sentences on which pairs count as linked, and on what a map shows.
    note
        What else must be known to read the scores.
    """

    title: str
    question: str
    score: str | None
    measure: str
    paper_data: str
    linked: str = ""
    map: str = ""
    note: str = ""


_TASKS = {
    "matching": Task(
        "Matching",
        "Each user's ratings are cut into two halves: which half belongs to which?",
        "reciprocal_rank",
        "reciprocal rank",
        "MovieLens-20M",
        "Linked pairs are the two halves of test users.",
        "Points are halves of test users, and an edge joins the two of a user: the pieces of that graph.",
    ),
    "clustering": Task(
        "Clustering",
        "Do clusters of the embedding find the groups that the synthetic tree was made of?",
        "nmi",
        "normalised mutual information",
        "the synthetic tree",
        "Linked pairs are training edges.",
        "The map is a connected piece of the graph, with its training edges.",
        "The residual tells how far the eigenvector of the cut is from exact, over its eigenvalue: above "
        f"{CLEAR_RESIDUAL} no second eigenvector stands out, and the score says little (no clear cut).",
    ),
    "links": Task(
        "Links",
        "Who is linked with whom? Held-out links are ranked among all candidates.",
        "ncrr",
        "normalised cumulative reciprocal rank",
        "Epinions",
        "Linked pairs are test edges, which no model was trained on.",
        "The map is a connected piece of the graph, with its training edges.",
    ),
}


@final
@dataclass(frozen=True)
class Recipe:
    """A recipe for people.

    Attributes
    ----------
    title, sentence
        What it is called, and a sentence on it.
    compared
        Whether it may be held against the paper's numbers.
    """

    title: str
    sentence: str
    compared: bool = True


_RECIPES = {
    "recommended": Recipe("Recommended recipe", "What we advise."),
    "paper": Recipe(
        "The paper's settings",
        "Trained with the settings that the paper gives; hidden widths and steps, which it leaves open, are ours.",
    ),
    "quick": Recipe(
        "Quick look", "The same code on small data: not to be held against the paper's numbers.", compared=False
    ),
}
_BY_VALIDATION = {
    "matching": "Settings were chosen on validation data.",
    "links": "Settings were chosen on validation data, but for those of CVAE_corr, which are the paper's.",
}
_BY_LOOKING = "Steps and the size of PCA were chosen by looking at these very data: clustering has no validation part."


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


def describe_recipe(name: str, task: str | None = None) -> Recipe:
    """How a report speaks of a recipe, for a task; one that it does not know is called by its name.

    Examples
    --------
    >>> describe_recipe("paper").title, describe_recipe("quick").compared
    ("The paper's settings", False)
    """
    if name not in _RECIPES:
        return Recipe(f"Recipe: {name}", "")
    recipe = _RECIPES[name]
    if task == "clustering":
        return replace(recipe, sentence=f"{recipe.sentence} {_BY_LOOKING}")
    if name == "recommended" and task in _BY_VALIDATION:
        return replace(recipe, sentence=f"{recipe.sentence} {_BY_VALIDATION[task]}")
    return recipe
