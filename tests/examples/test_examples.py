"""The example scripts run as they stand, without a warning, and show what they say they show."""

import ast
import re
from pathlib import Path

import pytest

from nursery import Call

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
TASKS = {
    "clustering",
    "custom_likelihood",
    "link_prediction",
    "matching",
    "networkx_graph",
    "pyg_baseline",
    "sklearn_pipeline",
}
MOST_LINES = 100


@pytest.fixture
def printed_by(nursery, tmp_path):
    """Run an example, and give what it prints."""

    def run(name: str) -> str:
        folder, said = tmp_path / "folder", tmp_path / "said"
        folder.mkdir()
        call = {"path": str(FOLDER / f"{name}.py"), "folder": str(folder)}
        (ending,) = nursery.run(Call("fragile:script", call, stdout=str(said)))
        assert (ending.code, ending.errors) == (0, "")
        assert list(folder.iterdir()) == [], "an example leaves no files behind"
        return said.read_text()

    return run


def number_after(words: str, text: str) -> float:
    found = re.search(rf"{re.escape(words)}\s+(-?\d+\.\d+)", text)
    assert found, f"{words!r} is not followed by a number in: {text}"
    return float(found[1])


def test_every_task_has_its_script_and_its_test():
    assert {path.stem for path in SCRIPTS} == TASKS
    assert {
        name.removeprefix("test_the_example_") for name in globals() if name.startswith("test_the_example_")
    } == TASKS


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_flat_and_says_how_to_run_it(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert f"python examples/{path.name}" in (ast.get_docstring(ast.parse(text)) or "")
    assert "__main__" not in text
    assert "def main" not in text


def test_the_example_matching(printed_by):
    said = printed_by("matching")
    assert number_after("(CVAE_ind)", said) > 0.3 > 0.1 > number_after("(VAE)", said)


def test_the_example_link_prediction(printed_by):
    said = printed_by("link_prediction")
    assert number_after("CVAE_ind", said) > 1.2 * number_after("  VAE", said) > number_after("degree", said)


def test_the_example_clustering(printed_by):
    said = printed_by("clustering")
    assert number_after("CVAE_ind  NMI", said) > 0.7 > 0.1 > number_after("VAE       NMI", said)


def test_the_example_custom_likelihood(printed_by):
    said = printed_by("custom_likelihood")
    gaussian, student = (number_after("reconstructed", line) for line in said.splitlines()[:2])
    assert student < 0.5 * gaussian
    assert "alike: True" in said


def test_the_example_pyg_baseline(printed_by):
    rows = {line.split()[0]: [*map(float, line.split()[1:])] for line in printed_by("pyg_baseline").splitlines()[1:]}
    assert rows["CVAE_ind"][1] > 3 * rows["GraphSAGE"][1]  # of points without edges
    assert rows["GraphSAGE"][0] > rows["GraphSAGE"][1]


def test_the_example_networkx_graph(printed_by):
    said = printed_by("networkx_graph")
    weights = [float(weight) for weight in re.findall(r"weight (\d\.\d+)", said)]
    assert weights == sorted(weights)
    assert weights[-1] == 1.0
    assert "Valjean" not in re.search("nearest to Valjean: (.*)", said)[1]


def test_the_example_sklearn_pipeline(printed_by):
    said = printed_by("sklearn_pipeline")
    bounds = [float(bound) for bound in re.findall(r"tau = 0\.\d+: (-\d+\.\d+)", said)]
    assert len(bounds) == 3
    assert len(set(bounds)) == 3, "tau, and with it the graph, did not reach the model"
    assert number_after("labels, embedding:", said) > 0.55
