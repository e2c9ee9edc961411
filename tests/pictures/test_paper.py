import pytest

from corrvae.experiments.recipes import find_recipe
from corrvae.pictures.paper import describe_recipe, describe_task, paper_numbers


def test_the_printed_numbers():
    numbers = paper_numbers()
    assert numbers["matching"] == {"vae": 0.3498, "ind": 0.6608, "corr": 0.7129}
    assert numbers["clustering"].items() >= {"vae": 0.0031, "ind": 0.2821, "corr": 0.2748}.items()
    assert numbers["links"] == {"vae": 0.0052, "sage": 0.0115, "ind": 0.0160, "corr": 0.0171}


def test_others_can_be_given():
    assert paper_numbers({"links": {"vae": 1.0}}) == {"links": {"vae": 1.0}}
    assert paper_numbers({}) == {}


def test_tasks_and_recipes_that_nobody_knows_go_by_their_names():
    assert describe_task("guessing").title == "Guessing"
    assert describe_task("guessing").score is None
    assert describe_recipe("own").title == "Recipe: own"
    assert describe_recipe("own", "clustering").sentence == ""


def test_only_tasks_with_a_validation_part_claim_to_have_used_it():
    for task in ("matching", "links"):
        assert "chosen on validation data" in describe_recipe("recommended", task).sentence
        assert "these very data" not in describe_recipe("recommended", task).sentence
    for recipe in ("recommended", "paper", "quick"):
        sentence = describe_recipe(recipe, "clustering").sentence
        assert "chosen on validation data" not in sentence
        assert "by looking at these very data" in sentence


@pytest.mark.parametrize("task", ["matching", "links"])
def test_a_model_that_has_the_papers_settings_is_excepted(task):
    recommended, paper = (find_recipe(task, name).choose(["corr"]).entries[0] for name in ("recommended", "paper"))
    excepted = "but for those of CVAE_corr, which are the paper's" in describe_recipe("recommended", task).sentence
    assert excepted == (recommended == paper)


def test_the_papers_settings_are_not_all_the_papers():
    for task in ("matching", "clustering", "links"):
        assert "which it leaves open, are ours" in describe_recipe("paper", task).sentence


def test_only_the_quick_recipe_is_not_compared():
    assert [describe_recipe(name).compared for name in ("recommended", "paper", "quick", "own")] == [1, 1, 0, 1]
