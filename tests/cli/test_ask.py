import csv
import io
import json
import os
import threading

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from corrvae.cli import app
from nursery import Call
from support.runs import DIM, IDS, N_POINTS, brute_links, make_files, make_frame, make_graph, trained, write_rows

COMMANDS = ["embed", "neighbors", "links", "match", "cluster", "score"]
TAIL = ["score", "mean_part", "variance_part", "correlation_part", "metric", "better"]


@pytest.fixture(scope="module")
def ind(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("ind"))


@pytest.fixture(scope="module")
def corr(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("corr"), "pairwise")


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("bare"), "pairwise", store_features=False)


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    path = tmp_path_factory.mktemp("new") / "new.csv"
    make_frame(8, seed=9, prefix="new").rename_axis("id").to_csv(path)
    return path


def ask(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rows(result):
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def refused(*arguments):
    """The one sentence of a command that cannot be done."""
    result = ask(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    result = ask(command, "--help")
    assert result.exit_code == 0
    assert f"corrvae {command} run/" in " ".join(result.output.replace("│", " ").split())


def test_embedding_to_stdout_is_that_of_training(ind):
    found = rows(ask("embed", ind.run))
    assert [row["id"] for row in found] == IDS
    means = np.array([[row[f"z{k}"] for k in range(DIM)] for row in found], np.float32)
    np.testing.assert_array_equal(means, trained().embedding_)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_embedding_of_new_points_goes_to_files(ind, new, ending, tmp_path):
    out = tmp_path / f"z.{ending}"
    result = ask("embed", ind.run, "--features", new, "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines()[-1] == f"8 rows are in {out}"
    expected = trained().infer_posterior(make_frame(8, seed=9, prefix="new"))
    if ending == "npy":
        found = np.load(out)
    else:
        table = parquet.read_table(out) if ending == "parquet" else None
        listed = table.to_pylist() if table else list(csv.DictReader(io.StringIO(out.read_text())))
        assert [row["id"] for row in listed] == [f"new{k}" for k in range(8)]
        found = np.array([[float(row[f"{kind}{k}"]) for kind in "zs" for k in range(DIM)] for row in listed])
    np.testing.assert_allclose(found, np.concatenate([expected.mean, expected.stddev], axis=1), rtol=1e-5, atol=1e-6)


def test_neighbours_of_ids_and_of_a_file_of_ids(ind, tmp_path):
    found = rows(ask("neighbors", ind.run, "--k", 3, "--query", "p4,p1"))
    assert list(found[0]) == ["query", "rank", "neighbor", *TAIL]
    scores, ids = trained().kneighbors(["p4", "p1"], n_neighbors=3, exclude="self")
    assert [row["neighbor"] for row in found] == ids.ravel().tolist()
    np.testing.assert_allclose([float(row["score"]) for row in found], scores.ravel(), rtol=1e-8)
    assert {row["better"] for row in found} == {"lower"}
    listed = write_rows(tmp_path / "ids.txt", [["p4"], ["p1"]])
    assert rows(ask("neighbors", ind.run, "-k", 3, "--query", listed)) == found


def test_neighbours_of_new_points(ind, new):
    found = rows(ask("neighbors", ind.run, "-k", 2, "--features", new, "--metric", "log_odds"))
    assert [row["query"] for row in found] == [f"new{k}" for k in range(8) for _ in range(2)]
    assert {row["better"] for row in found} == {"higher"}
    expected = trained().kneighbors(make_frame(8, seed=9, prefix="new"), n_neighbors=2, metric="log_odds").ids
    assert [row["neighbor"] for row in found] == expected.ravel().tolist()


def test_too_many_neighbours_are_clipped_and_said(ind):
    result = ask("neighbors", ind.run, "-k", 99, "--query", "p0")
    assert len(rows(result)) == N_POINTS - 1
    assert result.stderr == "99 neighbours were asked for, but there are 35\n"
    assert ask("neighbors", ind.run, "-k", 99, "--query", "p0", "--quiet").stderr == ""


@pytest.mark.parametrize("kind", ["ind", "corr"])
def test_links_are_the_best_of_all_pairs(kind, request):
    files, model = request.getfixturevalue(kind), trained("independent" if kind == "ind" else "pairwise")
    found = rows(ask("links", files.run, "--top", 20))
    metric = {"ind": "log_odds", "corr": "expected_distance"}[kind]
    _, scores = brute_links(model, metric, 20)
    np.testing.assert_allclose([float(row["score"]) for row in found], scores, rtol=1e-4, atol=1e-5)
    graph = make_graph()
    assert all(row["target"] not in graph.neighbors(row["source"]) for row in found)
    assert {row["metric"] for row in found} == {metric}


def test_a_document_is_the_whole_of_stdout(corr, tmp_path):
    document = json.loads(ask("links", corr.run, "--top", 2, "--json").stdout)
    assert (document["metric"], document["better"], len(document["rows"])) == ("expected_distance", "lower", 2)
    assert document["rows"][0].keys() == {"rank", "source", "target", *TAIL} - {"metric", "better"}
    out = tmp_path / "links.parquet"
    told = ask("links", corr.run, "--top", 2, "--json", "--out", out)
    assert json.loads(told.stdout) == {"out": str(out), "n_rows": 2, "metric": "expected_distance", "better": "lower"}
    assert parquet.read_table(out)["source"].to_pylist() == [row["source"] for row in document["rows"]]


def test_lists_are_matched(corr, new, tmp_path):
    other = tmp_path / "other.csv"
    make_frame(12, seed=4, prefix="other").rename_axis("id").to_csv(other)
    found = rows(ask("match", corr.run, "--left", new, "--right", other, "--one-to-one"))
    expected = trained("pairwise").match(make_frame(8, seed=9, prefix="new"), make_frame(12, seed=4, prefix="other"))
    assert [[row["left"], row["right"]] for row in found] == expected.id_pairs.tolist()
    np.testing.assert_allclose([float(row["score"]) for row in found], expected.scores, rtol=1e-6)


def test_clusters_say_how_they_were_found(ind):
    result = ask("cluster", ind.run, "-k", 3, "--json")
    document = json.loads(result.stdout)
    assert document["method"] == "spectral"
    assert document["route"] in result.stderr
    assert {row["cluster"] for row in document["rows"]} == {0, 1, 2}
    assert [row["id"] for row in rows(ask("cluster", ind.run, "--method", "kmeans", "-q"))] == IDS


def test_pairs_are_scored(corr, tmp_path):
    pairs = write_rows(tmp_path / "pairs.csv", [("source", "target"), ("p3", "p9"), ("p9", "p3")])
    found = rows(ask("score", corr.run, "--pairs", pairs))
    scored = trained("pairwise").score_pairs([("p3", "p9"), ("p9", "p3")])
    np.testing.assert_allclose([float(row["score"]) for row in found], scored.scores, rtol=1e-8)
    np.testing.assert_allclose([float(row["correlation_part"]) for row in found], scored.parts.correlation, rtol=1e-6)


def test_integers_match_the_strings_that_spell_them(tmp_path):
    files = make_files(tmp_path, named=False)
    assert {row["query"] for row in rows(ask("neighbors", files.run, "--query", "3,11", "-k", 2))} == {"3", "11"}


def test_a_pairwise_run_without_features_takes_them_from_a_file(bare, corr):
    with_file = ask("links", bare.run, "--top", 5, "--features", bare.features)
    assert rows(with_file) == rows(ask("links", corr.run, "--top", 5))
    assert rows(ask("neighbors", bare.run, "--candidates", bare.features, "--query", "p1")) == rows(
        ask("neighbors", corr.run, "--query", "p1")
    )


def test_what_is_wrong_is_one_sentence(ind, bare, new, tmp_path):
    assert "id 'zed' is not among the 36 points" in refused("neighbors", ind.run, "--query", "p1,zed")
    assert "there is no such folder" in refused("info", tmp_path / "nowhere")
    assert "corrvae did not write it" in refused("links", tmp_path)
    few = tmp_path / "few.csv"
    make_frame().iloc[:, :3].rename_axis("id").to_csv(few)
    assert str(few) in refused("embed", ind.run, "--features", few)
    assert "--candidates FILE" in refused("neighbors", bare.run, "--query", "p1")
    assert "--features FILE" in refused("links", bare.run)
    assert "no such folder to write to" in refused("links", ind.run, "--out", tmp_path / "no" / "l.csv")
    assert "must end in .csv or .parquet" in refused("links", ind.run, "--out", tmp_path / "l.txt")
    assert "give one of them" in refused("neighbors", ind.run, "--query", "p1", "--features", new)
    assert "metric must be" in refused("links", ind.run, "--metric", "manhattan")
    assert "method must be" in refused("cluster", ind.run, "--method", "dbscan")
    pairs = write_rows(tmp_path / "pairs.csv", [("source", "target"), ("p3", "p9"), ("p9", "zed")])
    assert "id 'zed' is not among" in refused("score", ind.run, "--pairs", pairs)
    assert "(line 3)" in refused("score", ind.run, "--pairs", pairs)
    assert "no such file" in refused("score", ind.run, "--pairs", tmp_path / "none.csv")
    assert "no such file" in refused("embed", ind.run, "--features", tmp_path / "none.csv")


def program(*arguments, stdout):
    return Call("fragile:program", {"arguments": [*map(str, arguments)]}, stdout=str(stdout))


def test_the_program_writes_the_same_bytes_in_every_process(corr, nursery, tmp_path):
    (ending,) = nursery.run(program("links", corr.run, "--top", 30, stdout=tmp_path / "said"))
    assert (ending.code, ending.errors) == (0, "")
    said = (tmp_path / "said").read_bytes()
    assert said == ask("links", corr.run, "--top", 30).stdout_bytes
    assert said.count(b"\n") == 31
    assert b"\r" not in said


def test_a_reader_who_leaves_early_is_no_error(ind, nursery, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: (tmp_path / "pipe").open("rb").close())
    reader.start()
    (ending,) = nursery.run(program("neighbors", ind.run, "-k", 35, stdout=tmp_path / "pipe"))
    reader.join()
    assert ending.errors == ""
