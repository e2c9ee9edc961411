import os
import re
import shlex

import pytest

from corrvae.errors import CorrvaeError, DataFileError, MissingDataFileError
from corrvae.experiments import reproduce as module
from corrvae.experiments.records import write_record
from corrvae.experiments.reproduce import Request, failures_of, plan, reproduce
from corrvae.experiments.running import Tally
from corrvae.experiments.worker import perform
from support.experiments import Stream, made_record, tiny_job, tiny_recipe


@pytest.fixture
def tiny(monkeypatch):
    """Recipes of a size for tests, and a place to look at what is said."""
    monkeypatch.setattr(module, "find_recipe", tiny_recipe)
    return Stream()


@pytest.mark.parametrize("task", ["clustering", "links", "matching"])
def test_a_table_a_file_and_records(task, tiny, tmp_path, capsys):
    request = Request(task, quick=True, seeds=2, out=tmp_path / "new" / "results")
    tally = reproduce(request, start=perform, errors=tiny)
    assert (len(tally.records), tally.skipped, tally.failures) == (6, 0, [])
    printed = capsys.readouterr().out
    assert f"{task} on" in printed
    assert "CVAE_ind" in printed
    written = (tmp_path / "new" / "results" / f"{task}.md").read_text()
    assert re.search(r"\| CVAE_ind \| 0\.\d{4} ± 0\.\d{4} \| \d\.\d{4} ± \d\.\d{4} \|", written)
    again = reproduce(request, start=lambda job, report: pytest.fail("it was run again"), errors=tiny)
    assert again.skipped == 6
    assert "finished before" in tiny.getvalue()
    assert tally.records[0].command == f"corrvae reproduce {task} --quick --seeds 2"


def test_more_seeds_run_only_what_is_new(tiny, tmp_path):
    reproduce(Request("matching", ("lsa",), out=tmp_path, quick=True), start=perform, errors=tiny)
    tally = reproduce(Request("matching", ("lsa",), 3, out=tmp_path, quick=True), start=perform, errors=tiny)
    assert (len(tally.records), tally.skipped) == (3, 1)


def test_the_first_recipe_is_the_recommended_one():
    assert plan(Request("clustering"), print).name == "recommended"
    assert plan(Request("clustering", recipe="paper"), print).name == "paper"
    assert plan(Request("clustering", quick=True), print).name == "quick"


def test_a_data_set_is_chosen_with_its_least_ratings():
    recipe = plan(Request("matching", dataset="ml-20m"), print)
    assert recipe.data == {"name": "ml-20m", "min_ratings": 1000}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request("cooking"), "there is no task 'cooking'"),
        (Request("links", models=("vae", "gat")), "no model 'gat'; it has vae, ind, corr, ind+graph"),
        (Request("clustering", models=()), "--models names no model; there are vae, ind, corr, sage"),
        (Request("links", seeds=0), "--seeds must be 1 or more, not 0"),
        (Request("links", threads=0), "--threads must be 1 or more, not 0"),
        (Request("links", recipe="paper", quick=True), "leave out --recipe paper"),
        (Request("links", recipe="best"), "there is no recipe 'best'"),
        (Request("clustering", dataset="ml-1m"), "--dataset is for matching"),
        (Request("matching", dataset="ml-1m", quick=True), "--dataset is for matching"),
        (Request("matching", dataset="netflix"), "there are ml-1m, ml-10m"),
    ],
)
def test_what_cannot_be_is_refused(request_, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        plan(request_, print)


def test_without_torch_geometric_its_models_are_left_out_or_refused(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    said = []
    recipe = plan(Request("clustering"), said.append)
    assert set(recipe.models) == {"vae", "ind", "corr", "pca", "truth"}
    assert said == ["left out: sage and vgae need torch_geometric: pip install 'corrvae[baselines]'"]
    with pytest.raises(ValueError, match=re.escape("sage needs torch_geometric: pip install 'corrvae[baselines]'")):
        plan(Request("clustering", models=("sage", "ind")), said.append)
    assert plan(Request("clustering", models=("ind",)), said.append).models == ("ind",)


def test_missing_data_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", "elsewhere")
    request = Request("links", models=("degree",), data=tmp_path / "my data", out=tmp_path / "out")
    expected = f"get it with: CORRVAE_DATA={shlex.quote(str(tmp_path / 'my data'))} corrvae data get epinions"
    with pytest.raises(MissingDataFileError, match=re.escape(expected)) as caught:
        reproduce(request, start=perform)
    assert caught.value.path == tmp_path / "my data" / "epinions.zip"
    assert os.environ["CORRVAE_DATA"] == str(tmp_path / "my data")
    assert not (tmp_path / "out").exists()


def test_without_a_folder_the_advice_is_the_plain_command(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    with pytest.raises(MissingDataFileError, match="get it with: corrvae data get epinions"):
        reproduce(Request("links", models=("degree",), out=tmp_path / "out"), start=perform)


def test_a_damaged_record_that_was_not_asked_for_is_named_before_anything_runs(tiny, tmp_path):
    path = tmp_path / "matching" / "recommended" / "older" / "seed-7.json"
    path.parent.mkdir(parents=True)
    path.write_text("rubbish")
    request = Request("matching", ("lsa",), quick=True, out=tmp_path)
    with pytest.raises(DataFileError, match="cannot be read as the record") as caught:
        reproduce(request, start=lambda job, report: pytest.fail("it was run"), errors=tiny)
    assert caught.value.path == path


def test_records_of_other_data_are_not_mixed_in(tiny, tmp_path):
    data = {"name": "other", "settings": {"name": "ml-20m", "min_ratings": 1000}}
    scores = {"reciprocal_rank": 0.5}
    path = write_record(tmp_path, made_record(task="matching", recipe="quick", model="older", data=data, scores=scores))
    request = Request("matching", ("lsa",), quick=True, out=tmp_path)
    with pytest.raises(
        DataFileError, match=r"is of other data .*ml-20m.*; remove it, or choose another --out"
    ) as caught:
        reproduce(request, start=lambda job, report: pytest.fail("it was run"), errors=tiny)
    assert caught.value.path == path
    path.unlink()
    # in the folder of another recipe it disturbs nobody
    write_record(tmp_path, made_record(task="matching", recipe="paper", model="older", data=data, scores=scores))
    assert len(reproduce(request, start=perform, errors=tiny).records) == 1


def test_a_folder_that_cannot_be_made_is_named(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CorrvaeError, match="cannot be written"):
        reproduce(Request("matching", quick=True, out=tmp_path / "file"), start=perform, errors=tiny)


def test_failures_are_told_together(tmp_path):
    jobs = tiny_job(tmp_path, "vae"), tiny_job(tmp_path, "ind")
    assert failures_of(Tally(failures=[(jobs[0], "it rained")])) == "1 run failed (VAE, seed 0: it rained)"
    both = Tally(failures=[(jobs[0], "it rained"), (jobs[1], "it snowed")])
    assert failures_of(both) == "2 runs failed (VAE, seed 0: it rained; CVAE_ind, seed 0: it snowed)"
