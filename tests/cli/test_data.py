import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from corrvae import datasets, load
from corrvae.datasets import CATALOGUE
from corrvae.errors import DataFileError
from support.commands import failure, rows, run
from support.runs import write_rows


@pytest.fixture
def edges(tmp_path):
    """A triangle with a tail, all ways of a triangle being alike."""
    listed = [("source", "target", "strength"), ("a", "b", 2), ("a", "c", 2), ("b", "c", 2), ("c", "d", 5)]
    return write_rows(tmp_path / "edges.csv", listed)


def test_weights_are_shares_of_spanning_trees(edges):
    found = rows("weights", edges)
    assert [(row["source"], row["target"]) for row in found] == [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    assert_allclose([float(row["weight"]) for row in found], [2 / 3, 2 / 3, 2 / 3, 1.0], rtol=1e-8)


def test_weights_have_conductances_and_a_route(edges, tmp_path):
    document = json.loads(run("weights", edges, "--conductance", "strength", "--json").stdout)
    assert [row["conductance"] for row in document["rows"]] == [2, 2, 2, 5]
    assert document["method"] == "exact"
    out = tmp_path / "weights.parquet"
    result = run("weights", edges, "--out", out)
    assert result.stderr.endswith(f"4 rows are in {out}\n")
    assert "method" in failure("weights", edges, "--method", "guess", "--quiet")
    assert "no column named 'w'" in failure("weights", edges, "--conductance", "w")


def test_a_long_table_becomes_mapped_arrays_that_fit_reads(tmp_path):
    rng = np.random.default_rng(0)
    rated = [(f"u{u}", f"m{m}", int(rng.integers(1, 6))) for u in range(30) for m in rng.choice(40, 6, replace=False)]
    table = write_rows(tmp_path / "ratings.csv", [("user", "movie", "rating"), *rated])
    result = run("data", "convert", table, "--out", tmp_path / "mapped", "--json", "--quiet")
    counts = {"rows": 30, "columns": len({movie for _, movie, _ in rated}), "entries": 180}
    assert json.loads(result.stdout) == {"out": str(tmp_path / "mapped"), **counts}
    small = ["--n-components", 2, "--hidden", 8, "--max-steps", 20, "--random-state", 0, "--device", "cpu", "--quiet"]
    assert run("fit", table, "--out", tmp_path / "a", *small).exit_code == 0
    assert run("fit", tmp_path / "mapped", "--out", tmp_path / "b", *small).exit_code == 0
    one, other = load(tmp_path / "a"), load(tmp_path / "b")
    assert one.ids_.tolist() == other.ids_.tolist()
    assert_allclose(one.embedding_, other.embedding_, rtol=1e-4, atol=1e-6)
    assert rows("embed", tmp_path / "b", "--features", tmp_path / "mapped")[0]["id"] == "u0"
    assert "exists already" in failure("data", "convert", table, "--out", tmp_path / "mapped")


def test_data_sets_are_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    lines = run("data", "list").stdout.splitlines()
    assert "ml-1m: not there; corrvae data get ml-1m" in lines
    assert "ciao: not there; corrvae data get ciao --from FILE" in lines  # not to be downloaded
    assert [line.partition(":")[0] for line in lines] == list(CATALOGUE)
    assert json.loads(run("data", "list", "--json").stdout) == dict.fromkeys(CATALOGUE)


def test_a_data_set_is_put_into_its_place(tmp_path, monkeypatch):
    asked = []

    def get(name, source, *, quiet):
        asked.append((name, source, quiet))
        if name == "ml-2m":
            raise DataFileError(tmp_path, "there is no such data set")
        return tmp_path / name

    monkeypatch.setattr(datasets, "get", get)
    result = run("data", "get", "ml-1m", "--from", tmp_path / "x.zip")
    terms = CATALOGUE["ml-1m"].terms
    assert result.stderr == f"ml-1m is there: {tmp_path / 'ml-1m'}\n{terms}\n"
    document = json.loads(run("data", "get", "ml-1m", "--json", "-q").stdout)
    assert document == {"name": "ml-1m", "path": str(tmp_path / "ml-1m"), "terms": terms}
    assert asked == [("ml-1m", tmp_path / "x.zip", False), ("ml-1m", None, True)]
    assert "no such data set" in failure("data", "get", "ml-2m")
