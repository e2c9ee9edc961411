import re

import pytest

from corrvae.experiments.models import make_estimator
from corrvae.experiments.published import TASKS
from corrvae.experiments.recipes import MIN_RATINGS, RECIPES, Entry, find_recipe
from corrvae.model.families import make_family
from corrvae.scoring import METRICS

ENTRIES = [(recipe, entry) for recipe in RECIPES.values() for entry in recipe.entries]
CVAES = [(recipe, entry) for recipe, entry in ENTRIES if entry.method in ("vae", "cvae")]


@pytest.mark.parametrize(("recipe", "entry"), CVAES, ids=lambda part: getattr(part, "model", getattr(part, "name", "")))
def test_recipes_make_valid_estimators_with_their_parameters(recipe, entry):
    model = make_estimator(entry, 7)
    model._check_parameters()
    found = model.get_params()
    for name, value in entry.parameters.items():
        if name != "family":
            assert found[name] == value, name
    assert (found["random_state"], found["device"]) == (7, "cpu")
    family = type(make_family(found["family"])).__name__.lower()
    expected = {"corr": "pairwise", "corr+graph": "pairwise", "joint": "joint", "joint+adaptive": "joint"}
    assert family == expected.get(entry.model, "independent")
    if recipe.task != "robustness":
        assert found["normalize"] != "auto"  # the recipes are those of the first edition, which had no such choice


@pytest.mark.parametrize("task", ["clustering", "links", "matching"])
def test_every_task_has_every_recipe_and_the_papers_models(task):
    for name in ("recommended", "paper", "quick"):
        recipe = find_recipe(task, name)
        assert recipe.models[:3] == ("vae", "ind", "corr")
        assert len(set(recipe.models)) == len(recipe.models)
        assert all(entry.metric in METRICS for entry in recipe.entries)
    assert set(TASKS[task].published) <= set(find_recipe(task, "recommended").models)


@pytest.mark.parametrize(("task", "gamma"), [("clustering", 0.1), ("links", 1000.0), ("matching", 1.0)])
def test_gamma_is_the_papers(task, gamma):
    (entry,) = find_recipe(task, "paper").choose(["corr"]).entries
    assert {entry.parameters[f"family__gamma_{part}"] for part in ("kl", "mi")} == {gamma}


def test_quick_recipes_download_nothing():
    assert {recipe.data["name"] for recipe in RECIPES.values() if recipe.name == "quick"} == {"tree", "small"}


def test_the_least_number_of_ratings_keeps_the_papers_proportion():
    for name, least in MIN_RATINGS.items():
        assert least == 50 * int(name.removeprefix("ml-").removesuffix("m"))


def test_unknown_names_raise_with_the_known_ones():
    with pytest.raises(
        ValueError, match=re.escape("no task 'cooking'; there are clustering, links, matching, recommend")
    ):
        find_recipe("cooking", "paper")
    with pytest.raises(ValueError, match=re.escape("there are recommended, old-protocol, ciao, paper, quick")):
        find_recipe("links", "secret")
    with pytest.raises(ValueError, match=re.escape("no model 'gat'; it has vae, ind, corr, lsa")):
        find_recipe("matching", "paper").choose(["vae", "gat"])


def test_an_entry_without_a_family_is_independent():
    assert make_estimator(Entry("vae", "VAE", "vae", {"max_steps": 5}), 0).family == "independent"
