import json
import re
from pathlib import Path

import pytest

from corrvae.errors import DataFileError
from corrvae.experiments.records import read_record, read_records, record_path, write_record
from support.experiments import made_record


@pytest.mark.parametrize("changes", [{}, {"history": None, "sketches": None}])
def test_what_is_written_is_read(tmp_path, changes):
    record = made_record(**changes)
    path = write_record(tmp_path, record)
    assert path == record_path(tmp_path, "clustering", "paper", "ind", 0)
    assert read_record(path) == record
    assert [place.name for place in path.parent.iterdir()] == [path.name]


def test_records_come_in_the_order_of_their_paths(tmp_path):
    for model, seed in (("vae", 1), ("ind", 0), ("vae", 0)):
        write_record(tmp_path, made_record(model=model, seed=seed))
    (tmp_path / "clustering.md").write_text("not a record")
    assert [(record.model, record.seed) for record in read_records(tmp_path)] == [("ind", 0), ("vae", 0), ("vae", 1)]


def test_a_failed_write_keeps_the_record_that_was_there(tmp_path):
    path = write_record(tmp_path, made_record())
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record(tmp_path, made_record(scores={"nmi": float("nan")}))
    assert read_record(path) == made_record()
    assert [place.name for place in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "cannot be read as the record of a run"),
        ("[]", "is not the record of a run in format 1"),
        ('{"format": 2}', "is not the record of a run in format 1"),
        ('{"format": 1, "task": "links"}', "it needs task, recipe, model"),
        ("\udcff", "cannot be read as the record of a run"),
    ],
)
def test_what_is_no_record_is_named(tmp_path, text, problem):
    path = tmp_path / "seed-0.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataFileError, match=re.escape(problem)) as caught:
        read_record(path)
    assert caught.value.path == path


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"seed-0\.json: cannot be read"):
        read_record(tmp_path / "seed-0.json")


def test_unknown_fields_are_refused(tmp_path):
    path = write_record(tmp_path, made_record())
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "mood": "good"}))
    with pytest.raises(DataFileError, match="it needs task"):
        read_record(path)


def test_paths_tell_the_run():
    assert record_path(Path("out"), "links", "quick", "ind+graph", 3).parts[-4:] == (
        "links",
        "quick",
        "ind+graph",
        "seed-3.json",
    )
