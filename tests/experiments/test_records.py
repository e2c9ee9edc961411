import json
import re
import shutil
from pathlib import Path

import pytest

from corrvae.errors import DataFileError, FolderError
from corrvae.experiments.recipes import RECIPES
from corrvae.experiments.records import read_record, read_records, record_path, write_record
from corrvae.experiments.running import jobs_of
from corrvae.experiments.tables import ResultTable, result_table, write_tables
from support.experiments import made_record
from support.unchecked import unchecked

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("changes", [{}, {"history": None}])
def test_what_is_written_is_read(tmp_path, changes):
    record = made_record(**changes)
    path = write_record(tmp_path, record)
    assert path == record_path(tmp_path, "clustering", "paper", "ind", 0)
    assert read_record(path) == record
    assert [place.name for place in path.parent.iterdir()] == [path.name]


def test_a_record_can_be_compared_line_by_line(tmp_path):
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
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="file"):
        write_record(tmp_path / "file", made_record())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"format": 2}', "it is not in format 1"),
        ('{"format": 1, "task": "links"}', "TypeError: .*missing"),
        ("\udcff", "UnicodeDecodeError"),
    ],
)
def test_what_is_no_record_is_named(tmp_path, text, problem):
    path = tmp_path / "seed-0.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataFileError, match=f"cannot be read as the record of a run .*{problem}") as caught:
        read_record(path)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"task": "cooking"}, "KeyError: 'cooking'"),
        ({"scores": {"ari": 0.3}}, "KeyError: 'nmi'"),
        ({"scores": {"nmi": "high"}}, "could not convert string to float: 'high'"),
    ],
)
def test_what_cannot_be_is_named(tmp_path, changes, problem):
    path = write_record(tmp_path, made_record())
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with unchecked(), pytest.raises(DataFileError, match=re.escape(problem)):
        read_record(path)


def test_committed_records_can_be_read_and_are_those_of_the_recipes():
    records = list(read_records(RESULTS))
    assert len(records) >= 80
    accepted = [
        job.finished() for recipe in RECIPES.values() for job in jobs_of(recipe, 5, RESULTS, "") if job.path.exists()
    ]
    assert len(accepted) == len(records)


# ---- tables


def rows_of(table: ResultTable) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_means_and_deviations_over_seeds():
    records = [
        made_record(
            seed=seed, model=model, label=model.upper(), scores={"nmi": nmi, "ari": 0.5}, seconds=60.0 * (seed + 1)
        )
        for model, scores in {"ind": (0.2, 0.3, 0.4), "corr": (0.1, 0.3, 0.6), "vae": (0.05,)}.items()
        for seed, nmi in enumerate(scores)
    ]
    table = result_table(reversed(records))
    assert table.title == "clustering on synthetic tree, 60 points: the paper's settings"
    rows = rows_of(table)
    assert list(rows) == ["VAE", "IND", "CORR"]
    assert rows["IND"]["NMI"] == "0.3000 ± 0.1000"
    assert rows["IND"]["paper"] == "0.2821 ± 0.1599"
    assert (rows["VAE"]["NMI"], rows["VAE"]["seeds"], rows["VAE"]["minutes"]) == ("0.0500", "1", "1.0")
    assert (rows["IND"]["minutes"], rows["IND"]["MB"], rows["IND"]["ARI"]) == ("2.0", "512", "0.5")
    # the differences are -0.1, 0 and 0.2: mean 0.0333, standard deviation 0.1528, over sqrt(3) 0.0882
    assert "CVAE_corr less CVAE_ind, seed by seed: +0.0333, with a standard error of 0.0882." in table.caption


def test_models_that_the_recipe_does_not_have_come_last():
    records = [made_record(model=model, label=model) for model in ("zeta", "alpha", "corr", "vae")]
    assert [row[0] for row in result_table(records).rows] == ["vae", "corr", "alpha", "zeta"]


def test_terminals_have_the_same_columns():
    table = result_table([made_record()])
    assert [column.header for column in table.to_rich().columns] == list(table.columns)


def test_committed_tables_are_those_of_the_committed_records(tmp_path):
    for task in ("links", "matching", "clustering"):
        shutil.copytree(RESULTS / task, tmp_path / task)
        assert write_tables(tmp_path, task).read_text() == (RESULTS / f"{task}.md").read_text()
