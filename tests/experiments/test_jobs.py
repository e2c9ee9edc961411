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
