"""The example scripts run as they are, without a warning, leave no files, and show what they claim."""

import re
import runpy
import warnings
from pathlib import Path

import pytest
import sklearn

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


@pytest.fixture
def printed_by(tmp_path, monkeypatch, capsys):
    """Run an example, and return what it prints."""

    def run(name: str) -> str:
        monkeypatch.chdir(tmp_path)
        with sklearn.config_context(), warnings.catch_warnings():
            runpy.run_path(str(FOLDER / f"{name}.py"))
        assert list(tmp_path.iterdir()) == []
        return capsys.readouterr().out

    return run


def number_after(words: str, text: str) -> float:
    found = re.search(rf"{re.escape(words)}\s+(-?\d+\.\d+)", text)
    assert found, f"{words!r} is not followed by a number in: {text}"
    return float(found[1])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_flat_and_tested(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    assert f"python examples/{path.name}" in text
    assert "__main__" not in text
    assert f"test_{path.stem}" in globals()


def test_matching(printed_by):
    printed = printed_by("matching")
    assert number_after("(CVAE_ind)", printed) > 3 * number_after("(VAE)", printed)
    assert number_after("(CVAE_ind)", printed) > 0.2


def test_link_prediction(printed_by):
    printed = printed_by("link_prediction")
    assert number_after("CVAE_ind", printed) > 1.1 * number_after("  VAE", printed) > number_after("degree", printed)


def test_groups(printed_by):
    printed = printed_by("groups")
    assert number_after("50 members: group", printed) == pytest.approx(0.81)
    assert number_after("3 members: group 0.810 clique", printed) == pytest.approx((2 * 0.9 + 0.9**2) / 3, abs=0.01)


def test_adaptive(printed_by):
    printed = printed_by("adaptive")
    assert number_after("AUC of conductances:", printed) > 0.9
    assert number_after("given", printed) > 1.5 * number_after("added", printed)


def test_clustering(printed_by):
    printed = printed_by("clustering")
    assert number_after("CVAE_ind  NMI", printed) > 0.5 > 0.2 > number_after("VAE       NMI", printed)
    assert number_after("to their group:", printed) > 0.6


def test_custom_likelihood(printed_by):
    printed = printed_by("custom_likelihood")
    gaussian, student = (number_after("reconstruction", line) for line in printed.splitlines()[:2])
    assert student < 0.6 * gaussian
    assert "after loading: True" in printed


def test_pyg_baseline(printed_by):
    pytest.importorskip("torch_geometric")
    rows = {line.split()[0]: [*map(float, line.split()[1:])] for line in printed_by("pyg_baseline").splitlines()[1:]}
    assert rows["CVAE_ind"][1] > 2 * rows["GraphSAGE"][1]  # of points without edges
    assert rows["GraphSAGE"][0] > rows["GraphSAGE"][1]


def test_lalonde(printed_by):
    pytest.importorskip("causaldata")
    printed = printed_by("lalonde")
    known, naive = number_after("the experiment:", printed), number_after("trainees - survey:", printed)
    assert naive < -8000
    low, high = map(float, re.findall(r"\((-?\d+) to (-?\d+)\)", printed)[0])
    assert low < known < high
    assert naive < low


def test_networkx_graph(printed_by):
    printed = printed_by("networkx_graph")
    weights = [float(weight) for weight in re.findall(r"weight (\d\.\d+)", printed)]
    assert weights == sorted(weights)
    assert weights[-1] == 1.0
    assert "Valjean" not in printed.partition("nearest to Valjean: ")[2].splitlines()[0]


def test_sklearn_pipeline(printed_by):
    printed = printed_by("sklearn_pipeline")
    bounds = re.findall(r"tau = 0\.\d+: (-\d+\.\d+)", printed)
    assert len(set(bounds)) == 3, "tau, and with it the graph, did not reach the model"
    assert number_after("labels, embedding:", printed) > 0.55
