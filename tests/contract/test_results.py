"""The tables of results in README and in results/ follow from the records, by the commands that stand beside them."""

import re
import shlex
import statistics
from pathlib import Path

import pytest

from corrvae.experiments.published import TASKS
from corrvae.experiments.records import read_record
from corrvae.experiments.tables import task_tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
SECTION = (ROOT / "README.md").read_text().partition("### The paper's tasks\n")[2].partition("\n## ")[0]
# a command, then the table that it made
SHOWN = re.findall(r"`(corrvae reproduce [^`]+)`:\n\n((?:\|.*\n)+)", SECTION)
MODELS = {
    "VAE": "vae",
    "CVAE_ind": "ind",
    "CVAE_ind, graph features": "ind+graph",
    "CVAE_corr": "corr",
    "GraphSAGE": "sage",
    "VGAE": "vgae",
    "LSA": "lsa",
    "LSA of x": "lsa",
    "PCA of x": "pca",
    "true latents": "truth",
    "degree": "degree",
    "common neighbours": "common",
    "Adamic-Adar": "adamic",
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def rounded(value: float, cell: str) -> str:
    return f"{value:.{len(cell.partition('.')[2])}f}"


@pytest.mark.parametrize("task", TASKS)
def test_the_tables_are_those_of_the_records(task):
    expected = "\n\n".join(table.to_markdown() for table in task_tables(RESULTS, task))
    assert (RESULTS / f"{task}.md").read_text() == expected + "\n"


def test_the_readme_has_tables():
    assert {shlex.split(command)[2] for command, _ in SHOWN} == {"clustering", "links", "matching"}


@pytest.mark.parametrize(("command", "table"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_readme_has_the_numbers_of_the_records(command, table):
    words = shlex.split(command)
    task, seeds = TASKS[words[2]], int(words[words.index("--seeds") + 1])
    recipe = words[words.index("--recipe") + 1] if "--recipe" in words else "recommended"
    names = {title: name for name, title in {task.metric: task.metric_name, **task.others}.items()}
    header, _, *rows = map(cells, table.splitlines())
    for label, published, *found in rows:
        model = MODELS.get(label) or MODELS[label.partition(",")[0]]
        if "--models" in words:
            assert model in words[words.index("--models") + 1].split(",")
        assert published == (rounded(task.published[model].mean, published) if model in task.published else "")
        records = [read_record(RESULTS / task.name / recipe / model / f"seed-{seed}.json") for seed in range(seeds)]
        for title, cell in zip(header[2:], found, strict=True):
            if title == "paper's settings":
                assert (model, cell) == (model, with_the_papers_settings(task, model, cell))
                continue
            scores = [record.scores[names[title]] for record in records]
            mean, _, spread = cell.partition(" ± ")
            assert (model, mean) == (model, rounded(statistics.fmean(scores), mean))
            assert (model, spread) == (model, rounded(statistics.stdev(scores), spread) if spread else "")


def with_the_papers_settings(task, model: str, cell: str) -> str:
    place = RESULTS / task.name / "paper" / model / "seed-0.json"
    return rounded(read_record(place).scores[task.metric], cell) if place.is_file() else ""


def test_the_readme_says_how_far_corr_is_ahead():
    said = re.search(r"CVAE_corr is ahead of CVAE_ind by (\S+), with a standard error of (\d\.\d+)", SECTION)
    assert said is not None
    (recorded,) = re.findall(r"seed by seed: \+(\S+), with a standard error of (\d\.\d+)", matching_text())
    assert said.groups() == tuple(f"{float(value):.3f}" for value in recorded)


def matching_text() -> str:
    return next(table.caption for table in task_tables(RESULTS, "matching") if "recommended" in table.title)
