import json
import re
from dataclasses import asdict

import pytest

from corrvae import CorrelatedVAE
from corrvae.experiments.published import TASKS
from corrvae.experiments.recipes import MIN_RATINGS, RECIPES, find_recipe
from corrvae.parameters import check_parameters

ENTRIES = [(recipe, entry) for recipe in RECIPES.values() for entry in recipe.entries]


def test_every_task_has_every_recipe():
    assert set(RECIPES) == {(task, name) for task in TASKS for name in ("recommended", "paper", "quick")}


@pytest.mark.parametrize(("recipe", "entry"), ENTRIES, ids=lambda part: getattr(part, "model", None) or part.task)
def test_entries_can_be_built_and_written_down(recipe, entry):
    assert json.loads(json.dumps(asdict(entry)))["model"] == entry.model
    if entry.method in ("vae", "cvae"):
        model = CorrelatedVAE(**entry.parameters)
        check_parameters(model)
        assert (model.posterior == "pairwise") == entry.model.startswith("corr")
        assert model.likelihood == ("bernoulli" if recipe.task == "clustering" else "multinomial")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: f"{recipe.task}-{recipe.name}")
def test_models_are_distinct_and_the_papers_are_there(recipe):
    assert len(set(recipe.models)) == len(recipe.models)
    assert {"vae", "ind", "corr"} <= set(recipe.models)
    if recipe.name != "quick":
        assert set(TASKS[recipe.task].published) <= set(recipe.models)


@pytest.mark.parametrize(("task", "gamma"), [("clustering", 0.1), ("links", 1000.0), ("matching", 1.0)])
def test_the_papers_settings(task, gamma):
    for entry in find_recipe(task, "paper").choose(["vae", "ind", "corr"]).entries:
        stated = {name: entry.parameters[name] for name in ("n_components", "tau", "vertex_batch", "edge_batch")}
        assert stated == {"n_components": 100, "tau": 0.99, "vertex_batch": 64, "edge_batch": 256}
        assert entry.parameters["learning_rate"] == 1e-3
        assert entry.metric == "expected_distance"
        assert not entry.redraw
    assert find_recipe(task, "paper").choose(["corr"]).entries[0].parameters["gamma"] == gamma


def test_only_links_have_graph_features():
    with_features = {(recipe.task, entry.model) for recipe, entry in ENTRIES if entry.graph_features}
    assert with_features == {("links", "ind+graph")}


@pytest.mark.parametrize("task", TASKS)
def test_the_papers_recipe_has_no_correlated_models_but_the_papers(task):
    entries = find_recipe(task, "paper").entries
    assert [entry.model for entry in entries if entry.method == "cvae"] == ["ind", "corr"]


@pytest.mark.parametrize(("recipe", "n_components"), [("quick", 1), ("paper", 20), ("recommended", 20)])
def test_principal_components_are_counted_in_their_label(recipe, n_components):
    (entry,) = find_recipe("clustering", recipe).choose(["pca"]).entries
    assert entry.parameters == {"n_components": n_components}
    assert entry.label == {1: "PCA of x, 1 component", 20: "PCA of x, 20 components"}[n_components]


def test_quick_recipes_download_nothing():
    assert {recipe.data["name"] for recipe in RECIPES.values() if recipe.name == "quick"} == {"tree", "small"}


def test_the_least_number_of_ratings_keeps_the_papers_proportion():
    for name, least in MIN_RATINGS.items():
        assert least == 50 * int(name.removeprefix("ml-").removesuffix("m"))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=re.escape("no task 'cooking'; there are clustering, links, matching")):
        find_recipe("cooking", "paper")
    with pytest.raises(ValueError, match=re.escape("there are recommended, paper, quick")):
        find_recipe("links", "secret")
    with pytest.raises(ValueError, match=re.escape("no model 'gat'; it has vae, ind, corr, lsa")):
        find_recipe("matching", "paper").choose(["vae", "gat"])
