from types import SimpleNamespace

import pytest

import corrvae.experiments.report
import corrvae.experiments.reproduce as experiments
from support.commands import failure, run


@pytest.fixture
def asked(monkeypatch):
    """What the experiments were asked for, in place of running them."""
    found = SimpleNamespace(calls=[], problem=None)

    def call(*arguments, **options):
        found.calls.append((arguments, options))
        if isinstance(found.problem, BaseException):
            raise found.problem
        return SimpleNamespace(problem=found.problem)

    monkeypatch.setattr(experiments, "reproduce", call)
    monkeypatch.setattr(experiments, "demo", call)
    return found


def test_options_reach_the_experiment(asked, tmp_path):
    options = ["--models", "ind, corr", "--seeds", 3, "--data", tmp_path, "--out", tmp_path / "out", "--threads", 1]
    assert run("reproduce", "links", *options, "--recipe", "paper").exit_code == 0
    assert run("reproduce", "matching", "--quick", "--dataset", "ml-20m", "--quiet").exit_code == 0
    (first, given), (second, quick) = asked.calls
    assert (first, second) == (("links",), ("matching",))
    assert (given["models"], given["seeds"], given["recipe"], given["threads"]) == (["ind", "corr"], 3, "paper", 1)
    assert (given["data"], given["out"], given["dataset"]) == (tmp_path, tmp_path / "out", None)
    assert (quick["recipe"], quick["dataset"], quick["models"], quick["quiet"]) == ("quick", "ml-20m", None, True)


def test_a_demonstration_has_a_folder(asked, tmp_path):
    assert run("demo", "--out", tmp_path / "demo", "--quiet").exit_code == 0
    assert asked.calls == [((tmp_path / "demo",), {"quiet": True})]


def test_runs_that_failed_are_told_at_the_end(asked):
    asked.problem = "1 run failed (links, ind, seed 0: no memory)"
    assert failure("reproduce", "links", code=1) == asked.problem


def test_what_is_wrong_is_one_sentence(tmp_path):
    assert "puzzles" in failure("reproduce", "puzzles", "--out", tmp_path)
    assert "seeds must be 1 or more" in failure("reproduce", "clustering", "--quick", "--seeds", 0, "--out", tmp_path)


def test_an_interrupt_is_reported_with_what_to_do(asked):
    asked.problem = KeyboardInterrupt()
    sentence = failure("reproduce", "links", code=1)
    assert sentence == "interrupted; what is finished is kept, and the same command resumes from there"


def test_a_report_is_on_results(tmp_path, monkeypatch):
    monkeypatch.setattr(corrvae.experiments.report, "write_report", lambda folder, out: folder / "report.html")
    assert run("report", tmp_path).stdout == f"The report is in {tmp_path / 'report.html'}\n"
