import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from corrvae.cli.draw import read_labels
from support.commands import failure, run
from support.markup import parse
from support.runs import make_files, write_rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("run"))


def test_a_page_is_beside_the_run(files):
    result = run("plot", files.run)
    path = files.folder / "run.html"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"The picture is in {path}\n")
    assert "36 points of 5 features" in parse(path.read_text()).words


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_map_is_a_picture(files, ending, start, tmp_path):
    out = tmp_path / f"map.{ending}"
    result = run("plot", files.run, "--n-clusters", 2, "--out", out, "--json")
    assert json.loads(result.stdout) == {"out": str(out)}
    assert out.read_bytes().startswith(start)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_values_of_a_table_belong_to_ids(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    listed = [("id", "age", "town"), ("p3", 30, "Rome"), ("zed", 1, "Oslo"), ("p1", "", "Bern")]
    if ending == "parquet":
        columns = {"id": ["p3", "zed", "p1"], "age": [30, 1, None], "town": ["Rome", "Oslo", "Bern"]}
        parquet.write_table(pa.table(columns), path)
    else:
        path.write_text("\n".join(("\t" if ending == "tsv" else ",").join(map(str, row)) for row in listed))
    assert read_labels(np.array(["p1", "p2", "p3"], object), path) == {
        "age": [None, None, 30],
        "town": ["Bern", None, "Rome"],
    }


def test_what_is_wrong_is_one_sentence(files, tmp_path):
    towns = write_rows(tmp_path / "towns.csv", [("id", "town"), ("p3", "Rome")])
    sides = ("match", files.run, "--left-ids", "p3", "--right-ids", "p1", "--exact-on")
    assert "no column 'age' beside the ids; there are 'town'" in failure(*sides, f"{towns}:age")
    write_rows(towns, [("id", "town"), ("zed", "Rome")])
    assert "none of its ids, such as 'zed'" in failure(*sides, f"{towns}:town")
    assert "nowhere.csv" in failure(*sides, f"{tmp_path / 'nowhere.csv'}:town")
    assert "must end in .html, .png" in failure("plot", files.run, "--out", tmp_path / "map.gif")


def test_a_map_to_explore_is_beside_the_run(files, tmp_path):
    path = files.folder / "run.map.html"
    result = run("explore", files.run)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"The map is in {path}\n")
    assert "<title>run</title>" in path.read_text()
    towns = write_rows(tmp_path / "towns.csv", [("id", "town"), ("p3", "Rome")])
    result = run("explore", files.run, "--labels", towns, "--out", tmp_path / "map.html", "--json")
    assert json.loads(result.stdout) == {"out": str(tmp_path / "map.html")}
    assert '{"kinds": ["Rome"], "name": "town"}' in (tmp_path / "map.html").read_text()


def test_explore_names_what_is_wrong(files, tmp_path):
    assert "must end in .html" in failure("explore", files.run, "--out", tmp_path / "map.png")
    assert "layout must be one of" in failure("explore", files.run, "--layout", "tsne")
    towns = write_rows(tmp_path / "towns.csv", [("id", "town"), ("zed", "Rome")])
    assert "none of its ids, such as 'zed'" in failure("explore", files.run, "--labels", towns)


def test_labels_are_in_the_order_of_the_points(tmp_path):
    path = write_rows(
        tmp_path / "people.csv", [("id", "town", "age"), ("b", "Rome", "3"), ("x", "Oslo", ""), ("a", "", "7")]
    )
    labels = read_labels(np.array(["a", "b", "c"], dtype=object), path)
    assert labels == {"town": ["", "Rome", None], "age": [7, 3, None]}


def test_a_map_is_served_until_an_interrupt(files, monkeypatch):
    def interrupted(server):
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    result = run("explore", files.run, "--serve")
    assert result.exit_code == 0
    assert "http://localhost:" in result.stderr
