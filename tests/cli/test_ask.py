import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from sklearn.metrics.pairwise import cosine_similarity

from corrvae.cli.output import read_points
from support.commands import failure, rows, run
from support.runs import (
    DIM,
    IDS,
    N_POINTS,
    brute_links,
    literal_scores,
    make_files,
    make_frame,
    make_graph,
    trained,
    write_rows,
)

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


def numbers(found, name):
    return np.array([float(row[name]) for row in found])


def test_embedding_to_stdout_is_that_of_training(ind):
    found = rows("embed", ind.run)
    assert [row["id"] for row in found] == IDS
    means = np.array([[row[f"z{k}"] for k in range(DIM)] for row in found], np.float32)
    np.testing.assert_array_equal(means, trained().embedding_)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_embedding_of_new_points_goes_to_files(ind, new, ending, tmp_path):
    out = tmp_path / f"z.{ending}"
    result = run("embed", ind.run, "--features", new, "--out", out)
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert result.stderr.startswith(f"8 rows are in {out}")
    expected = trained().posterior(make_frame(8, seed=9, prefix="new"))
    names = [f"{kind}{k}" for kind in "zs" for k in range(DIM)]
    if ending == "csv":
        listed = [line.split(",") for line in out.read_text().splitlines()]
        assert listed[0] == ["id", *names]
        found, ids = np.array([row[1:] for row in listed[1:]], float), [row[0] for row in listed[1:]]
    else:
        listed = json.loads(out.read_text()) if ending == "json" else parquet.read_table(out).to_pylist()
        found, ids = np.array([[row[name] for name in names] for row in listed]), [row["id"] for row in listed]
    assert ids == [f"new{k}" for k in range(8)]
    np.testing.assert_allclose(found, np.concatenate([expected.mean, expected.stddev], axis=1), rtol=1e-5, atol=1e-6)


def test_neighbours_of_ids_and_of_a_file_of_ids(ind, tmp_path):
    found = rows("neighbors", ind.run, "--n-neighbors", 3, "--ids", "p4,p1")
    assert list(found[0]) == ["query", "rank", "neighbor", *TAIL]
    scores, ids = trained().kneighbors(ids=["p4", "p1"], n_neighbors=3)
    assert [row["neighbor"] for row in found] == ids.ravel().tolist()
    np.testing.assert_allclose(numbers(found, "score"), scores.ravel(), rtol=1e-8)
    assert {row["better"] for row in found} == {"lower"}
    listed = write_rows(tmp_path / "ids.txt", [["p4"], ["p1"]])
    assert rows("neighbors", ind.run, "-k", 3, "--ids", listed) == found


def test_neighbours_of_new_points_among_some(ind, new):
    among = [f"p{k}" for k in range(5, 20)]
    found = rows(
        "neighbors", ind.run, "-k", 2, "--features", new, "--metric", "log_odds", "--candidates", ",".join(among)
    )
    assert [row["query"] for row in found] == [f"new{k}" for k in range(8) for _ in range(2)]
    assert {row["better"] for row in found} == {"higher"}
    frame = make_frame(8, seed=9, prefix="new")
    expected = trained().kneighbors(frame, n_neighbors=2, metric="log_odds", candidates=among).ids
    assert [row["neighbor"] for row in found] == expected.ravel().tolist()


def test_known_points_of_a_file_are_not_their_own_neighbours(ind):
    found = rows("neighbors", ind.run, "-k", 1, "--features", ind.features)
    assert found == rows("neighbors", ind.run, "-k", 1)
    assert all(row["query"] != row["neighbor"] for row in found)


def test_linked_points_can_be_left_out(ind):
    graph = make_graph()
    found = rows("neighbors", ind.run, "-k", 5, "--unlinked")
    assert all(row["neighbor"] not in graph.neighbors(row["query"]) for row in found)


def test_too_many_neighbours_are_all_there_are(ind):
    result = run("neighbors", ind.run, "-k", 99, "--ids", "p0")
    assert len(result.stdout.splitlines()) == N_POINTS
    assert result.stderr == "99 neighbours were asked for, but there are 35\n"
    assert run("neighbors", ind.run, "-k", 99, "--ids", "p0", "--quiet").stderr == ""


def test_items_are_recommended_to_points(ind, new, tmp_path):
    found = rows("recommend", ind.run, "-k", 2, "--seen", "--ids", "p4,p1")
    assert list(found[0]) == ["query", "rank", "feature", "score"]
    expected = trained().recommend(ids=["p4", "p1"], k=2, exclude_seen=False)
    assert [row["feature"] for row in found] == expected.ids.ravel().tolist()
    np.testing.assert_allclose(numbers(found, "score"), expected.scores.ravel(), rtol=1e-6)
    items = write_rows(tmp_path / "items.txt", [["f4"], ["f0"]])
    found = rows("recommend", ind.run, "--seen", "--features", new, "--items", items)
    assert [row["query"] for row in found] == [f"new{k}" for k in range(8) for _ in range(2)]
    assert {row["feature"] for row in found} == {"f0", "f4"}
    assert rows("recommend", ind.run) == []  # every point has a number in every column
    found = rows("similar", ind.run, "f1,f3", "-k", 3)
    assert [row["feature"] for row in found] == trained().similar_features(["f1", "f3"], k=3).ids.ravel().tolist()


@pytest.mark.parametrize(("kind", "metric"), [("ind", "log_odds"), ("corr", "expected_distance")])
def test_links_are_the_best_of_all_pairs(kind, metric, request):
    files, model = request.getfixturevalue(kind), trained("independent" if kind == "ind" else "pairwise")
    found = rows("links", files.run, "--top", 20)
    np.testing.assert_allclose(numbers(found, "score"), brute_links(model, metric, 20), rtol=1e-5, atol=1e-5)
    graph = make_graph()
    assert all(row["target"] not in graph.neighbors(row["source"]) for row in found)
    assert {row["metric"] for row in found} == {metric}
    assert [row["rank"] for row in found] == [str(k) for k in range(1, 21)]


def test_links_are_explained(ind):
    model, graph = trained("independent"), make_graph()
    found = rows("links", ind.run, "--top", 20, "--explain")
    pairs = [(row["source"], row["target"]) for row in found]
    for row in found:
        common = set(graph.neighbors(row["source"]).tolist()) & set(graph.neighbors(row["target"]).tolist())
        named = row["common_neighbors"].split("; ") if row["common_neighbors"] else []
        assert len(named) == min(10, len(common))
        assert set(named) <= common
    expected = model.score_pairs(pairs, metric="expected_distance").scores
    assert numbers(found, "distance") == pytest.approx(expected, rel=1e-5)
    places = [[model.ids_.tolist().index(name) for name in pair] for pair in pairs]
    cosines = [cosine_similarity(model.features_[[i]], model.features_[[j]])[0, 0] for i, j in places]
    assert numbers(found, "row_cosine") == pytest.approx(cosines, abs=1e-5)
    if model.graph_.n_edges >= 40:  # the likelier, the better the score
        assert (np.diff(numbers(found, "probability")) <= 1e-12).all()
    assert "leave out --features" in failure("links", ind.run, "--explain", "--features", ind.features)


def test_a_document_is_the_whole_of_stdout(corr, tmp_path):
    document = json.loads(run("links", corr.run, "--top", 2, "--json").stdout)
    assert (document["metric"], document["better"], len(document["rows"])) == ("expected_distance", "lower", 2)
    assert document["rows"][0].keys() == {"rank", "source", "target", *TAIL} - {"metric", "better"}
    out = tmp_path / "links.parquet"
    written = json.loads(run("links", corr.run, "--top", 2, "--json", "--out", out).stdout)
    assert written == {"out": str(out), "n_rows": 2, "metric": "expected_distance", "better": "lower"}
    assert parquet.read_table(out)["source"].to_pylist() == [row["source"] for row in document["rows"]]


@pytest.mark.parametrize("replace", [True, False])
def test_lists_are_matched(corr, new, replace, tmp_path):
    other = tmp_path / "other.csv"
    make_frame(12, seed=4, prefix="new").rename_axis("id").to_csv(other)  # the same ids, which say nothing
    found = rows("match", corr.run, "--left", new, "--right", other, *(["--replace"] if replace else []))
    assert list(found[0]) == ["left", "right", "margin", *TAIL]
    left, right = make_frame(8, seed=9, prefix="left"), make_frame(12, seed=4, prefix="right")
    both = pd.concat([left, right])
    expected = trained("pairwise").match(left.index, right.index, both, replace=replace)
    names = [[row["left"].replace("new", "left"), row["right"].replace("new", "right")] for row in found]
    assert names == expected.id_pairs.tolist()
    np.testing.assert_allclose(numbers(found, "score"), expected.scores, rtol=1e-6)


def test_points_of_training_are_matched_with_a_caliper_and_like_values(ind, tmp_path):
    towns = {name: "ABC"[k % 3] for k, name in enumerate(IDS)}
    people = write_rows(tmp_path / "people.csv", [("id", "town", "old"), *((i, towns[i], len(i)) for i in IDS)])
    left, right = IDS[:9], IDS[9:30]
    listed = write_rows(tmp_path / "right.txt", [[name] for name in right])
    options = ["--caliper", "1.5sd", "--ratio", 2, "--exact-on", f"{people}:town", "--exact-on", f"{people}:old"]
    alone = tmp_path / "alone.csv"
    result = run(
        "match", ind.run, "--left-ids", ",".join(left), "--right-ids", listed, *options, "--unmatched", alone, "--json"
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    frame = pd.DataFrame({"town": towns, "old": {name: len(name) for name in IDS}})
    expected = trained().match(left, right, caliper="1.5sd", ratio=2, exact_on=frame)
    assert [[row["left"], row["right"]] for row in document["rows"]] == expected.id_pairs.tolist()
    assert document["caliper"] == pytest.approx(expected.caliper)
    written = pd.read_csv(alone)
    assert dict(zip(written["id"], written["why"], strict=True)) == expected.unmatched
    assert (written["side"] == np.where(written["id"].isin(left), "left", "right")).all()
    for side, names in (("left", left), ("right", right)):
        assert sum(document["unmatched"][side].values()) == len(set(names) & expected.unmatched.keys())
        assert f"of {len(names)} {side} points are not matched" in result.stderr


def test_lists_that_cannot_be_matched(ind, new, tmp_path):
    people = write_rows(tmp_path / "people.csv", [("id", "town"), ("p0", "A"), ("p1", "")])
    assert "pass both lists as tables" in failure("match", ind.run, "--left", new, "--right-ids", "p1")
    sides = ["--left-ids", "p0", "--right-ids", "p1"]
    assert "pass FILE:COLUMN" in failure("match", ind.run, *sides, "--exact-on", "town")
    assert "no value for the id 'p1'" in failure(
        "match", ind.run, "--left-ids", "p0", "--right-ids", "p1,p2", "--exact-on", f"{people}:town"
    )
    assert "'0.5sd', got 'near'" in failure("match", ind.run, *sides, "--caliper", "near")


def test_clusters_are_found_and_say_how(ind):
    result = run("cluster", ind.run, "-k", 3, "--json")
    document = json.loads(result.stdout)
    assert document["route"].startswith("spectral clustering")
    assert document["route"] in result.stderr
    assert {row["cluster"] for row in document["rows"]} == {0, 1, 2}
    assert [row["id"] for row in rows("cluster", ind.run, "--method", "kmeans", "-q")] == IDS


def test_pairs_are_scored(corr, tmp_path):
    pairs = write_rows(tmp_path / "pairs.csv", [("source", "target"), ("p3", "p9"), ("p9", "p3")])
    found = rows("score", corr.run, "--pairs", pairs)
    scored = trained("pairwise").score_pairs([("p3", "p9"), ("p9", "p3")])
    np.testing.assert_allclose(numbers(found, "score"), scored.scores, rtol=1e-8)
    np.testing.assert_allclose(numbers(found, "correlation_part"), scored.parts.correlation, rtol=1e-6)


def test_integers_match_the_strings_that_spell_them(tmp_path):
    files = make_files(tmp_path, named=False)
    assert {row["query"] for row in rows("neighbors", files.run, "--ids", "3,11", "-k", 2)} == {"3", "11"}
    model = SimpleNamespace(ids_=np.array(["7", "8"], object), missing="error")
    points = write_rows(tmp_path / "points.csv", [("id", "a"), (8, 0.5), (9, 1.5)])
    assert read_points(model, points, id_column=None, layout="wide").ids.tolist() == ["8", 9]


def test_a_run_without_features_takes_them_from_a_file(bare, corr):
    assert rows("links", bare.run, "--top", 5, "--features", bare.features) == rows("links", corr.run, "--top", 5)
    assert {row["metric"] for row in rows("links", bare.run, "--top", 5)} == {"log_odds"}


def test_facts_of_a_run(corr):
    lines = run("info", corr.run).stdout.splitlines()
    assert "  points: 36" in lines
    assert "  family: Pairwise" in lines
    document = json.loads(run("info", corr.run, "--json").stdout)
    assert document["training"]["stopped"] == "finished"
    assert document["folder"]["bytes"] > 1000


def test_what_is_wrong_is_one_sentence(ind, bare, new, tmp_path):
    assert "id 'zed' is not among the 36 points" in failure("neighbors", ind.run, "--ids", "p1,zed")
    assert "the id 'f9' is not among the 5 features" in failure("similar", ind.run, "f9")
    assert "no list of ids" in failure("neighbors", ind.run, "--ids", "p1,,p2")
    assert "there is no such folder" in failure("info", tmp_path / "nowhere")
    assert "no corrvae model" in failure("links", tmp_path)
    few = tmp_path / "few.csv"
    make_frame().iloc[:, :3].rename_axis("id").to_csv(few)
    assert str(few) in failure("embed", ind.run, "--features", few)
    assert "store_features=False" in failure("neighbors", bare.run, "--ids", "p1")
    assert "no such folder to write to" in failure("links", ind.run, "--out", tmp_path / "no" / "l.csv")
    assert "must end in .csv, .tsv, .parquet or .json" in failure("links", ind.run, "--out", tmp_path / "l.txt")
    assert "metric must be" in failure("links", ind.run, "--metric", "manhattan")
    assert "metric must be" in failure("neighbors", ind.run, "--metric", "manhattan")
    assert "method must be" in failure("cluster", ind.run, "--method", "dbscan")
    assert "1 to 36 groups" in failure("cluster", ind.run, "-k", 37)
    pairs = write_rows(tmp_path / "pairs.csv", [("source", "target"), ("p3", "p9"), ("p9", "zed")])
    assert f"{pairs}, line 3: the id 'zed' is not among" in failure("score", ind.run, "--pairs", pairs)
    assert "no such file" in failure("score", ind.run, "--pairs", tmp_path / "none.csv")
    assert "no such file" in failure("embed", ind.run, "--features", tmp_path / "none.csv")


def test_a_map_for_embedding_atlas(ind, tmp_path):
    out = tmp_path / "map.parquet"
    assert run("embed", ind.run, "--atlas", out).exit_code == 0
    table = parquet.read_table(out)
    assert table.column_names == ["id", "x", "y", "neighbors"]
    assert table["id"].to_pylist() == IDS
    pairs = np.array([(i, j) for i in range(N_POINTS) for j in range(N_POINTS) if i != j])
    distances = np.full((N_POINTS, N_POINTS), np.inf)
    distances[tuple(pairs.T)] = literal_scores(trained(), "expected_distance", pairs)
    for point, near in enumerate(table["neighbors"].to_pylist()):
        np.testing.assert_allclose(near["distances"], np.sort(distances[point])[:15], rtol=1e-4)
        np.testing.assert_allclose(distances[point, near["ids"]], near["distances"], rtol=1e-4)
    assert "must end in .parquet" in failure("embed", ind.run, "--atlas", tmp_path / "map.csv")
