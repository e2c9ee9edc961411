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
