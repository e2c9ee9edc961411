import numpy as np
import pytest

from corrvae.answers.naming import FilePairs
from corrvae.answers.questions import ask_clusters, ask_links, ask_matches, ask_neighbors, ask_scores
from corrvae.answers.run import Run
from corrvae.errors import FolderError
from corrvae.reading import Features
from support.runs import IDS, N_POINTS, brute_links, literal_parts, make_frame, make_graph, trained

METRICS = ["expected_distance", "log_odds", "mean_distance", "cosine"]
KINDS = ["independent", "pairwise"]


def features_of(frame):
    return Features(frame.to_numpy(np.float32), np.array(frame.index, dtype=object), tuple(frame.columns))


def check_parts(table, model, pairs):
    parts = [table.columns[f"{name}_part"] for name in ("mean", "variance", "correlation")]
    metric = table.facts["metric"]
    for found, expected in zip(parts, literal_parts(model, metric, pairs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sum(parts), table.columns["score"], rtol=1e-9, atol=1e-12)
    assert table.facts["better"] == ("higher" if metric in ("log_odds", "cosine") else "lower")


def places(ids):
    return np.array([IDS.index(name) for name in ids])


@pytest.mark.parametrize("posterior", KINDS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("top", [1, 40, 100_000])
def test_links_are_the_best_of_all_pairs(posterior, metric, top):
    model, said = trained(posterior), []
    table = ask_links(Run(model), top, metric=metric, say=said.append)
    pairs, scores = brute_links(model, metric, top)
    np.testing.assert_allclose(table.columns["score"], scores, rtol=1e-4, atol=1e-5)
    found = np.stack([places(table.columns["source"]), places(table.columns["target"])], axis=1)
    assert table.columns["rank"].tolist() == list(range(1, len(pairs) + 1))
    assert not set(map(tuple, found.tolist())) & set(map(tuple, model.graph_.edges.tolist()))
    check_parts(table, model, found)
    everything = N_POINTS * (N_POINTS - 1) // 2 - model.graph_.n_edges
    assert said == (
        []
        if top < everything
        else [f"100,000 links were asked for, but there are {everything} pairs that are not linked"]
    )


@pytest.mark.parametrize("posterior", KINDS)
def test_links_among_the_points_of_a_file_leave_out_those_of_the_graph(posterior):
    model = trained(posterior)
    some = make_frame().iloc[5:20]
    table = ask_links(Run(model), 1000, features=features_of(some), say=lambda _: None)
    graph = make_graph().subgraph(list(some.index))
    assert len(table) == 15 * 14 // 2 - graph.n_edges
    assert set(table.columns["source"]) | set(table.columns["target"]) <= set(some.index)


def test_a_run_without_a_graph_has_every_pair():
    assert len(ask_links(Run(trained(graph=False)), 10_000, say=lambda _: None)) == N_POINTS * (N_POINTS - 1) // 2


@pytest.mark.parametrize("posterior", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_are_the_best_of_all_others(posterior, metric):
    model = trained(posterior)
    table = ask_neighbors(Run(model), ["p3", "p7"], 4, metric=metric)
    assert table.columns["query"].tolist() == ["p3"] * 4 + ["p7"] * 4
    assert table.columns["rank"].tolist() == [1, 2, 3, 4] * 2
    for query in (3, 7):
        others = np.array([(query, k) for k in range(N_POINTS) if k != query])
        scores = np.sort(sum(literal_parts(model, metric, others)))
        best = scores[::-1][:4] if metric in ("log_odds", "cosine") else scores[:4]
        here = table.columns["query"] == f"p{query}"
        np.testing.assert_allclose(table.columns["score"][here], best, rtol=1e-4, atol=1e-5)
    pairs = np.stack([places(table.columns["query"]), places(table.columns["neighbor"])], axis=1)
    check_parts(table, model, pairs)


def test_linked_points_are_left_out_when_asked():
    table = ask_neighbors(Run(trained()), None, 5, unlinked=True)
    graph = make_graph()
    for query, found in zip(table.columns["query"], table.columns["neighbor"], strict=True):
        assert found not in {query, *graph.neighbors(query)}
    with pytest.raises(ValueError, match="without a graph"):
        ask_neighbors(Run(trained(graph=False)), None, 5, unlinked=True)


def test_more_neighbours_than_there_are_is_said():
    said = []
    table = ask_neighbors(Run(trained()), ["p0"], 99, say=said.append)
    assert len(table) == N_POINTS - 1
    assert said == ["99 neighbours were asked for, but there are 35"]


def test_rows_of_a_file_are_not_their_own_neighbours():
    run, training = Run(trained()), features_of(make_frame())
    table = ask_neighbors(run, training, 3)
    assert (table.columns["query"] != table.columns["neighbor"]).all()
    new = features_of(make_frame(6, seed=3, prefix="new"))
    assert set(ask_neighbors(run, new, 3).columns["query"]) == {f"new{k}" for k in range(6)}
    among = ask_neighbors(run, None, 2, candidates=new)
    assert set(among.columns["query"]) == set(among.columns["neighbor"]) | set(new.ids)
    assert (among.columns["query"] != among.columns["neighbor"]).all()


def test_a_pairwise_run_without_features_takes_them_from_a_file(tmp_path):
    from corrvae import load

    model = trained("pairwise")
    model.save(tmp_path / "run", store_features=False)
    run, features = Run(load(tmp_path / "run"), "run"), features_of(make_frame())
    expected = ask_neighbors(Run(model), ["p3"], 3)
    found = ask_neighbors(run, ["p3"], 3, candidates=features)
    assert found.columns["neighbor"].tolist() == expected.columns["neighbor"].tolist()
    assert (
        ask_links(run, 5, features=features).columns["source"].tolist()
        == ask_links(Run(model), 5).columns["source"].tolist()
    )
    for ask, option in (
        (lambda: ask_neighbors(run, ["p3"], 3), "--candidates"),
        (lambda: ask_links(run, 5), "--features"),
    ):
        with pytest.raises(FolderError, match=option):
            ask()
    assert len(ask_clusters(run, 2, method="kmeans")) == N_POINTS
    with pytest.raises(FolderError, match="--features"):
        ask_clusters(run, 2)


@pytest.mark.parametrize("posterior", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_pairs_are_scored_in_their_order(posterior, metric):
    model = trained(posterior)
    ids = np.array([["p5", "p2"], ["p2", "p5"], ["p0", "p1"], ["p5", "p2"]], dtype=object)
    table = ask_scores(Run(model), FilePairs(ids, str), metric=metric)
    assert table.columns["source"].tolist() == ids[:, 0].tolist()
    assert table.columns["target"].tolist() == ids[:, 1].tolist()
    check_parts(table, model, [(5, 2), (2, 5), (0, 1), (5, 2)])


def test_pairs_of_a_file_are_found_by_its_ids_or_rows():
    run, new = Run(trained()), features_of(make_frame(6, seed=3, prefix="new"))
    named = ask_scores(run, FilePairs(np.array([["new1", "new4"]], object), str), features=new)
    counted = ask_scores(run, FilePairs(np.array([[1, 4]]), str), features=Features(new.matrix, None, None))
    assert named.columns["score"].tolist() == counted.columns["score"].tolist()
    with pytest.raises(ValueError, match=r"id 'p1' is not among the 6 points of the file of features.*\(line 0\)"):
        ask_scores(run, FilePairs(np.array([["new1", "p1"]], object), "line {}".format), features=new)


@pytest.mark.parametrize("posterior", KINDS)
def test_matches_are_the_nearest_or_the_best_in_sum(posterior):
    from scipy.optimize import linear_sum_assignment

    model, frame = trained(posterior), make_frame()
    left, right = features_of(frame.iloc[:10]), features_of(frame.iloc[10:30])
    pairs = np.array([(i, j) for i in range(10) for j in range(10, 30)])
    scores = sum(literal_parts(model, "expected_distance", pairs)).reshape(10, 20)
    free = ask_matches(Run(model), left, right)
    np.testing.assert_allclose(free.columns["score"], scores.min(axis=1), rtol=1e-4, atol=1e-5)
    assert free.columns["left"].tolist() == IDS[:10]
    once = ask_matches(Run(model), left, right, one_to_one=True)
    rows, columns = linear_sum_assignment(scores)
    assert once.columns["score"].sum() == pytest.approx(scores[rows, columns].sum(), rel=1e-4)
    assert len(set(once.columns["right"])) == 10
    assert once.facts["exact"]


def test_the_same_id_on_both_sides_says_nothing():
    left, right = (features_of(make_frame(8, seed=seed, prefix="")) for seed in (1, 2))
    table = ask_matches(Run(trained()), left, right, one_to_one=True)
    assert sorted(map(str, table.columns["right"])) == sorted(right.ids)


def test_clusters_come_under_ids():
    said = []
    table = ask_clusters(Run(trained()), 100, say=said.append)
    assert table.columns["id"].tolist() == IDS
    assert said == ["100 groups were asked for, but there are 36 points"]
    assert sum(table.facts["sizes"]) == N_POINTS
