"""Numbers in README and docs are those of the committed records."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from corrvae.experiments.published import TASKS
from corrvae.experiments.records import read_records
from corrvae.experiments.tables import spread

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TASK_OF = {"matching two halves of a user": "matching", "clustering a tree": "clustering", "links": "links"}
DATA_OF = {"Epinions": "epinions", "like MovieLens-20M": "movielens"}


def rows(*first: str) -> list[tuple[str, list[str]]]:
    """Rows of tables that begin so, with the page that they are on."""
    lines = [(page.name, line) for page in PAGES for line in page.read_text().splitlines() if line.startswith("| ")]
    cells = [(page, [cell.strip() for cell in line.strip("|").split("|")]) for page, line in lines]
    return [(page, row) for page, row in cells if row[0].startswith(first)]


def results(name: str) -> list[dict]:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["rows"]


def as_written(scores: list[float], written: str) -> str:
    """Mean and deviation with as many digits as are written."""
    digits = len(written.split()[0].partition(".")[2])
    return " ± ".join(f"{float(number):.{digits}f}" for number in spread(scores).split(" ± "))


@pytest.fixture(scope="module")
def scores() -> dict[str, list[dict[str, list[float]]]]:
    """Main scores by task, recipe and model, as models are called in tables."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in read_records(ROOT / "results"):
        of_recipe = found.setdefault(record.task, {}).setdefault(record.recipe, {})
        of_recipe.setdefault(record.label, []).append(record.scores[TASKS[record.task].metric])
    return {task: list(recipes.values()) for task, recipes in found.items()}


def matches(scores: dict[str, list[float]], label: str, written: str) -> bool:
    """Whether this is the score of a model, whose label may be cut off before a comma or blank."""
    names = [name for name in scores if name == label or name.startswith((f"{label} ", f"{label},"))]
    return any(as_written(scores[name], written) == written for name in names)


def test_scores_of_the_tasks(scores):
    found = [(page, row) for page, row in rows(*TASK_OF) if row[0] in TASK_OF and len(row) == 7]
    assert {row[0] for _, row in found} == set(TASK_OF)
    for page, row in found:
        baseline = re.fullmatch(r"(.*?) (\d.*)", row[6])
        assert baseline is not None
        written = [("VAE", row[3]), ("CVAE_ind", row[4]), ("CVAE_corr", row[5]), (baseline[1], baseline[2])]
        recipes = scores[TASK_OF[row[0]]]
        assert any(all(matches(recipe, *cell) for cell in written) for recipe in recipes), (page, row)


def test_is_it_good(scores):
    """The table of the README: methods with their scores, "name mean ± deviation"."""
    known = {"match halves of users": scores["matching"], "find hidden links": scores["links"]}
    measured = {"label papers": ("defaults", "citeseer", "accuracy"), "recommend to": ("joint", "cold", "ndcg_100")}
    for name, (file, part, column) in measured.items():
        found: dict[str, list[float]] = {}
        for row in results(file):
            if row["key"].startswith(part):
                found.setdefault(row["method"], []).append(row[column])
        known[name] = [found]
    table = [row for page, row in rows(*known) if page == "README.md"]
    assert len(table) == 4
    for row in table:
        (recipes,) = [recipes for name, recipes in known.items() if row[0].startswith(name)]
        for cell in row[3:]:
            method = re.fullmatch(r"(.*?) (\d\S* ± .*)", cell)
            assert method is not None
            label = {
                "best heuristic of the graph, times likeness": "the best of these times (1 + cosine)",
                "friends of friends": "two hops",
            }.get(method[1], method[1])
            assert any(matches(recipe, label, method[2]) for recipe in recipes), cell


def test_steps_of_training():
    measured = {(row["data"], row["model"]): row for row in results("training") if row["question"] == "speed"}
    found = [(page, row) for page, row in rows(*DATA_OF) if len(row) == 5 and row[1].startswith("CVAE")]
    models = {"CVAE_ind": "ind", "CVAE_corr": "corr", "CVAE_corr, bilinear pair network (literal: perceptron)": None}
    assert len(found) >= 6
    for page, (data, model, *numbers) in found:
        row = measured[DATA_OF[data.partition(",")[0]], models[model] or "corr, bilinear"]
        assert numbers == [f"{row[name]:.1f}" for name in ("ours_ms", "literal_ms", "ratio")], (page, data, model)
    for row in measured.values():
        assert row["wanted"] is None or row["ratio"] >= row["wanted"]


def test_search_of_all_neighbours():
    (row,) = results("scoring")
    found = rows("20 nearest of all")
    assert found
    for page, cells in found:
        expected = [f"{row['seconds']:.0f} s", f"{row['literal_seconds']:,.0f} s", f"{row['ratio']:.0f}"]
        assert cells[2:5] == expected, page
    assert row["ratio"] >= 20


def test_maps_of_the_explorer():
    record = json.loads((ROOT / "benchmarks" / "results" / "explorer.json").read_text())
    for label, method in (("spring layout", "neighbors"), ("two principal", "pca")):
        ((_, cells),) = rows(label)
        assert cells[1:] == [
            f"{record['maps'][data][method]['kept']:.2f}" for data in ("listeners", "tree", "citeseer")
        ]
    prose = " ".join((ROOT / "docs" / "benchmarks.md").read_text().split())
    (row,) = record["rows"]
    assert f"a frame takes {row['processor_ms_per_frame']} ms of processor time" in prose
    assert f"99 of 100 within {row['frame_ms']['99']} ms" in prose
    assert f"first picture of the map after {row['first_paint_ms'][2] / 1000:.1f} s" in prose


def test_newcomers():
    found = {}
    for row in results("joint"):
        if row["key"].startswith("cold"):
            found.setdefault(row["method"], []).append([row["ndcg_100"], row["recall_20"]])
    labels = {"joint": "joint", "friends": "friends", "two hops": "friends and their friends, weighted"}
    for method, label in labels.items():
        (cells,) = [cells for _, cells in rows(label) if len(cells) == 3 and cells[0] == label]
        scores = np.array(found[method])
        means, errors = scores.mean(axis=0), scores.std(axis=0, ddof=1) / len(scores) ** 0.5
        assert cells[1:] == [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]


def test_wrong_edges():
    found = {}
    for record in read_records(ROOT / "results"):
        if (record.task, record.recipe) == ("robustness", "recommended"):
            found.setdefault(record.label, []).append(record.scores)
    columns = ("accuracy_0", "accuracy_10", "accuracy_30", "accuracy_50", "auc_0", "auc_30", "found_30")
    written = {cells[0]: cells[1:] for _, cells in rows("CVAE_ind", "Joint") if len(cells) == 8}
    assert len(written) == 4
    for label, cells in written.items():
        for name, cell in zip(columns, cells, strict=True):
            values = [scores[name] for scores in found[label] if name in scores]
            assert cell == (f"{np.mean(values):.3f}" if values else ""), (label, name)


def test_recommendations():
    columns = {
        "recommended": ("ndcg_100", "recall_20", "recall_50"),
        "ciao": ("ndcg_100", "ndcg_100_none", "ndcg_100_few", "ndcg_100_more"),
    }
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in read_records(ROOT / "results"):
        if record.task == "recommend":
            found.setdefault((record.recipe, record.label), []).append(record.scores)
    for (recipe, label), runs in found.items():
        names = columns[recipe]
        (cells,) = [
            cells[1:]
            for page, cells in rows(label)
            if (page, cells[0]) == ("experiments.md", label) and len(cells) == len(names) + 1
        ]
        values = [[scores[name] for scores in runs] for name in names]
        assert cells == [as_written(values[0], cells[0]), *(f"{np.mean(v):.3f}" for v in values[1:])], (recipe, label)
    few = {
        label: np.mean([s["ndcg_100_few"] for s in runs]) for (recipe, label), runs in found.items() if recipe == "ciao"
    }
    assert max(few, key=few.__getitem__) == "Joint"


def test_effects():
    found = {}
    for row in results("effects"):
        found.setdefault(row["method"], []).append(row["low"] <= 1.0 <= row["high"])
    labels = {"features": "features", "corrvae": "the embedding, caliper 0.3sd", "truth": "the traits themselves"}
    for method, label in labels.items():
        (cells,) = [cells for page, cells in rows(label) if (page, cells[0]) == ("causal.md", label)]
        assert (cells[1], len(found[method])) == (str(sum(found[method])), 100)
    assert sum(found["corrvae"]) >= 93


def test_other_ratings(scores):
    labels = ("CVAE_ind, competing", "exact PLDA, 30", "exact PLDA, 100", "LSA of x, 20")
    found = [cells for page, cells in rows("Ciao", "Epinions") if page == "experiments.md" and len(cells) == 6]
    assert len(found) == 4
    for cells in found:
        assert any(
            all(matches(recipe, label, written) for label, written in zip(labels, cells[2:], strict=True))
            for recipe in scores["matching"]
        ), cells
