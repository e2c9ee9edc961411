import pytest

from corrvae.experiments.published import TASKS, Published

# as printed in the tables of the paper
TABLES = {
    ("matching", "vae"): (0.3498, 0.0167),
    ("matching", "ind"): (0.6608, 0.0066),
    ("matching", "corr"): (0.7129, 0.0096),
    ("clustering", "vae"): (0.0031, 0.0059),
    ("clustering", "sage"): (0.0945, 0.0607),
    ("clustering", "ind"): (0.2821, 0.1599),
    ("clustering", "corr"): (0.2748, 0.0462),
    ("links", "vae"): (0.0052, 0.0007),
    ("links", "sage"): (0.0115, 0.0025),
    ("links", "ind"): (0.0160, 0.0004),
    ("links", "corr"): (0.0171, 0.0009),
}


def test_the_numbers_are_those_of_the_paper():
    found = {(task.name, model): (p.mean, p.stddev) for task in TASKS.values() for model, p in task.published.items()}
    assert found == TABLES


def test_matching_names_the_papers_data():
    assert TASKS["matching"].dataset == "MovieLens-20M"
    assert TASKS["links"].metric == "ncrr"


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_the_deciding_score_is_not_shown_twice(task):
    assert task.metric not in task.others


def test_four_digits():
    assert str(Published(0.016, 0.0004)) == "0.0160 ± 0.0004"
