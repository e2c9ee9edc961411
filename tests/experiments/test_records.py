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


def test_a_record_can_be_read_and_compared_line_by_line(tmp_path):
    path = write_record(tmp_path, made_record())
    document, text = json.loads(path.read_text()), path.read_text()
    assert text.endswith("}\n")
    entries = sum(1 + (len(value) + 1 if isinstance(value, dict) and value else 0) for value in document.values())
    assert len(text.splitlines()) == entries + 2


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
    is_of_another_kind = "in format 1" in problem
    assert ("Remove it, and the next `corrvae reproduce`" in str(caught.value)) != is_of_another_kind


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"seed-0\.json: cannot be read .*\)$"):
        read_record(tmp_path / "seed-0.json")


def test_unknown_fields_are_refused(tmp_path):
    path = write_record(tmp_path, made_record())
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "mood": "good"}))
    with pytest.raises(DataFileError, match="it needs task"):
        read_record(path)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scores": {}}, "it has no score nmi"),
        ({"scores": None}, "scores is None"),
        ({"scores": {"nmi": "high"}}, "the score nmi is 'high'"),
        ({"scores": {"nmi": 0.1, "ari": None}}, "the score ari is None"),
        ({"scores": {"nmi": True}}, "the score nmi is True"),
        ({"scores": {"nmi": 10**400}}, "the score nmi is 1000"),
        ({"settings": []}, "settings is []"),
        ({"data": None}, "data is None"),
        ({"versions": 3}, "versions is 3"),
        ({"machine": []}, "machine is []"),
        ({"seconds": "x"}, "seconds is 'x'"),
        ({"seconds": -1.0}, "seconds is -1.0"),
        ({"peak_megabytes": None}, "peak_megabytes is None"),
        ({"label": []}, "label is []"),
        ({"seed": "0"}, "seed is '0'"),
        ({"seed": False}, "seed is False"),
        ({"task": "cooking"}, "task is 'cooking'; there are clustering, links, matching"),
        ({"task": None}, "task is None"),
        ({"history": []}, "history is []"),
        ({"history": {"step": None}}, "step of its history is not a list of numbers"),
        ({"history": {"step": ["one"]}}, "step of its history is not a list of numbers"),
        ({"sketches": []}, "sketches is []"),
        ({"recipe": "quick"}, "by its content it should be clustering/quick/ind/seed-0.json"),
        ({"model": "vae"}, "by its content it should be clustering/paper/vae/seed-0.json"),
        ({"seed": 1}, "by its content it should be clustering/paper/ind/seed-1.json"),
    ],
)
def test_wrong_values_are_named_with_the_path(changes, problem, tmp_path):
    path = write_record(tmp_path, made_record())
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))
    with pytest.raises(DataFileError, match=re.escape(problem)) as caught:
        read_record(path)
    assert caught.value.path == path
    is_misplaced = "by its content" in problem
    assert ("Remove it, and the next `corrvae reproduce`" in str(caught.value)) != is_misplaced


def test_a_score_that_is_no_number_in_json_either_is_named(tmp_path):
    path = write_record(tmp_path, made_record(scores={"nmi": 0.125}))
    path.write_text(path.read_text().replace("0.125", "NaN"))
    with pytest.raises(DataFileError, match="the score nmi is nan"):
        read_record(path)


def test_lists_of_sketches_are_lists(tmp_path):
    path = write_record(tmp_path, made_record())
    document = json.loads(path.read_text())
    document["sketches"]["edges"] = 3
    path.write_text(json.dumps(document))
    with pytest.raises(DataFileError, match="edges of its sketches is not a list"):
        read_record(path)


def test_older_records_do_not_tell_the_machine(tmp_path):
    path = write_record(tmp_path, made_record())
    document = json.loads(path.read_text())
    del document["machine"]
    path.write_text(json.dumps(document))
    assert read_record(path) == made_record()


def test_a_record_is_read_from_within_its_folder(tmp_path, monkeypatch):
    path = write_record(tmp_path, made_record())
    monkeypatch.chdir(path.parent)
    assert read_record(Path(path.name)) == made_record()


def test_paths_tell_the_run():
    assert record_path(Path("out"), "links", "quick", "ind+graph", 3).parts[-4:] == (
        "links",
        "quick",
        "ind+graph",
        "seed-3.json",
    )


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("[" + "{}," * 300_000 + "1]", r"task is \[\{\}, .*\.\.\.\. Remove it,"),
        ("{}," * 6_000_000 + "1", "has more than 16,777,216 bytes"),
    ],
    ids=["long", "too long"],
)
def test_a_record_is_neither_parsed_nor_told_at_any_length(tmp_path, task, problem):
    path = record_path(tmp_path, "links", "quick", "ind", 0)
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"format": 1, "task": {task}}}')
    with pytest.raises(DataFileError, match=problem) as caught:
        read_record(path)
    assert len(caught.value.problem) < 200
