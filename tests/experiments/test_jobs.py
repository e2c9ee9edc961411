import bz2
import json
import re
from dataclasses import replace

import pytest

from corrvae.errors import DataFileError
from corrvae.experiments.jobs import Job, jobs_of
from corrvae.experiments.outcomes import keep_quiet
from corrvae.experiments.recipes import RECIPES
from corrvae.experiments.worker import perform
from support.experiments import tiny_job, tiny_recipe
from support.published import archive, dat_lines


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: f"{recipe.task}-{recipe.name}")
def test_jobs_are_the_same_on_the_other_side(recipe, tmp_path):
    for job in jobs_of(recipe, 1, tmp_path, "again"):
        read = Job.from_json(job.to_json())
        assert read.to_json() == job.to_json()
        assert "\n" not in job.to_json()
        assert read.path == job.path


def test_a_finished_job_is_known_and_its_settings_compared(tmp_path):
    job = tiny_job(tmp_path, "lsa")
    assert job.finished() is None
    record = perform(job, keep_quiet)
    assert job.finished() == record
    other = replace(job, entry=replace(job.entry, parameters={"n_components": 5}))
    expected = f"{job.path}: was made with other settings (parameters: n_components was 2, and is 5 now); remove it"
    with pytest.raises(DataFileError, match=re.escape(expected)):
        other.finished()
    with pytest.raises(DataFileError, match=re.escape("(data: n_users was 60, and is 61 now)")):
        replace(job, data={**job.data, "n_users": 61}).finished()
    with pytest.raises(DataFileError, match=re.escape("(metric: was 'mean_distance', and is 'cosine' now)")):
        replace(job, entry=replace(job.entry, metric="cosine")).finished()
    # how it is called, or who asked for it, makes no other result
    assert replace(job, command="else", entry=replace(job.entry, label="another")).finished() == record


def changed(job, **parts):
    """Change parts of settings or data in the record of a job, as another version might have written them."""
    document = json.loads(job.path.read_text())
    for name, values in parts.items():
        document[name] |= values
    job.path.write_text(json.dumps(document))


@pytest.mark.parametrize("model", ["ind", "lsa"])
def test_defaults_of_now_are_compared_too(tmp_path, model):
    job = tiny_job(tmp_path, model)
    made = perform(job, keep_quiet).settings["all_parameters"]
    name, wanted = ("tau", 0.99) if model == "ind" else ("center", True)
    changed(job, settings={"all_parameters": {**made, name: 0.5}})
    with pytest.raises(DataFileError, match=re.escape(f"(parameters: {name} was 0.5, and is {wanted} now)")):
        job.finished()
    changed(job, settings={"all_parameters": {**made, "older": 1}})
    with pytest.raises(DataFileError, match=re.escape("(parameters: older was 1, and is absent now)")):
        job.finished()
    # what was no parameter then, and is at its default now, makes no other result
    changed(job, settings={"all_parameters": {other: value for other, value in made.items() if other != name}})
    assert job.finished() is not None


def test_a_setting_of_none_is_not_one_that_is_absent(tmp_path):
    job = tiny_job(tmp_path, "lsa")
    perform(job, keep_quiet)
    changed(job, settings={"parameters": {**job.entry.parameters, "a": None}})
    with pytest.raises(DataFileError, match=re.escape("(parameters: a was None, and is absent now)")):
        job.finished()


def test_older_records_without_files_and_parameters_are_known(tmp_path):
    job = tiny_job(tmp_path, "lsa")
    perform(job, keep_quiet)
    document = json.loads(job.path.read_text())
    del document["settings"]["all_parameters"], document["data"]["files"]
    job.path.write_text(json.dumps(document))
    assert job.finished() is not None


def test_other_data_are_refused_and_the_same_in_other_files_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    archive(tmp_path / "ml-1m.zip", {"ml-1m/ratings.dat": dat_lines()})
    job = replace(tiny_job(tmp_path / "out", "lsa"), data={"name": "ml-1m", "min_ratings": 10})
    record = perform(job, keep_quiet)
    assert job.finished() == record
    archive(tmp_path / "ml-1m.zip", {"ml-1m/README": "packed anew", "ml-1m/ratings.dat": dat_lines()})
    assert job.finished() == record
    archive(tmp_path / "ml-1m.zip", {"ml-1m/ratings.dat": "41::10::5::978300760\n41::20::5::978300760\n" + dat_lines()})
    with pytest.raises(DataFileError, match=re.escape("was made with other data (files: ml-1m.zip was '")):
        job.finished()
    (tmp_path / "ml-1m.zip").unlink()
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "ratings.dat").write_text(dat_lines())
    assert job.finished() == record


def test_links_in_other_files_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    ratings = "".join(f"{user} {100 + user % 3} 5\n" for user in range(30))
    trust = "".join(f"{a} {b} 1\n{b} {a} 1\n" for a, b in ((i, (i + k) % 30) for i in range(30) for k in (1, 2)))
    members = {"ratings_data.txt": ratings, "trust_data.txt": trust}
    archive(tmp_path / "epinions.zip", members)
    job = replace(tiny_job(tmp_path / "out", "lsa", task="links"), data={"name": "epinions", "min_ratings": 2})
    record = perform(job, keep_quiet)
    (tmp_path / "epinions.zip").unlink()
    (tmp_path / "epinions").mkdir()
    for name, content in members.items():
        (tmp_path / "epinions" / f"{name}.bz2").write_bytes(bz2.compress(content.encode()))
    assert job.finished() == record
    (tmp_path / "epinions" / "trust_data.txt.bz2").write_bytes(bz2.compress((trust + "0 9 1\n9 0 1\n").encode()))
    with pytest.raises(DataFileError, match="was made with other data"):
        job.finished()


def test_a_damaged_record_is_named(tmp_path):
    job = tiny_job(tmp_path)
    job.path.parent.mkdir(parents=True)
    job.path.write_text('{"format": 1,')
    with pytest.raises(DataFileError, match=re.escape(f"{job.path}: cannot be read as the record of a run")):
        job.finished()


def test_every_model_with_every_seed(tmp_path):
    jobs = jobs_of(tiny_recipe(), 3, tmp_path, "again")
    assert [(job.seed, job.entry.model) for job in jobs[:4]] == [(0, "vae"), (0, "ind"), (0, "lsa"), (1, "vae")]
    assert len({job.path for job in jobs}) == len({job.checkpoint for job in jobs}) == 9
    assert json.loads(jobs[0].to_json())["folder"] == str(tmp_path)
