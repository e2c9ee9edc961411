"""Results under ids, and as tables."""

import numpy as np
import pyarrow as pa
import pytest

from corrvae.model.posterior import Posterior
from corrvae.scoring import Neighbors, PairRanks, PairScores, Parts, parts
from support.literal_scores import correlated_points

NAMES = np.array(["a", "b", "c", "d"], dtype=object)
POSITIONS = np.array([[2, 0, -1], [3, -1, -1]])
SCORES = np.array([[1.0, 2.0, np.nan], [0.5, np.nan, np.nan]])
PARTS = Parts(np.array([1.0, 2.0]), np.array([0.5, 0.25]), np.array([-1.0, 0.0]))


def named(ids=NAMES):
    points = correlated_points("bilinear", 4)
    points = points.take(np.arange(4))
    points._ids = ids
    points.__dict__.pop("_vertices", None)
    return points


@pytest.fixture
def found():
    points = named()
    return Neighbors.of(points.take(np.array([1, 2])), points, "expected_distance", POSITIONS, SCORES)


def test_neighbours_have_ids_and_parts_and_are_no_wider_than_needed(found):
    scores, ids = found
    assert ids.tolist() == [["c", "a"], ["d", None]]
    np.testing.assert_array_equal(scores, SCORES[:, :2])
    np.testing.assert_allclose(found.parts.score, scores)
    points = named()
    plain = parts(points, points, "expected_distance", np.array([[1, 2], [1, 0], [2, 3]]))
    np.testing.assert_array_equal(found.parts.mean[[0, 0, 1], [0, 1, 0]], plain.mean)
    np.testing.assert_array_equal(found.parts.variance[[0, 0, 1], [0, 1, 0]], plain.variance)
    assert found.query_ids.tolist() == ["b", "c"]
    assert repr(found) == "Neighbors(2 queries, 2 each, expected_distance)"


def test_a_table_of_neighbours(found):
    table = found.to_table()
    assert table.column_names[:4] == ["query", "rank", "neighbor", "score"]
    assert table["query"].to_pylist() == ["b", "b", "c"]
    assert table["rank"].to_pylist() == [1, 2, 1]
    assert table["neighbor"].to_pylist() == ["c", "a", "d"]
    assert table["score"].to_pylist() == [1.0, 2.0, 0.5]
    total = sum(table[f"{name}_part"].to_numpy() for name in ("mean", "variance", "correlation"))
    np.testing.assert_allclose(total, table["score"].to_numpy())
    assert set(table["metric"].to_pylist()) == {"expected_distance"}
    assert set(table["better"].to_pylist()) == {"lower"}


def test_the_first_query_alone(found):
    scores, ids = first = found.first()
    assert (scores.tolist(), ids.tolist()) == ([1.0, 2.0], ["c", "a"])
    assert first.query_ids.item() == "b"
    assert repr(first) == "Neighbors(1 query, 2 each, expected_distance)"
    assert first.to_table().equals(found.to_table().slice(0, 2))


def test_ids_keep_their_kind():
    points = named(np.array([7, 5, 6, 8]))
    whole = Neighbors.of(points, points, "cosine", np.array([[1], [0], [3], [2]]), np.ones((4, 1)))
    assert whole.ids.dtype == np.int64
    assert whole.to_table().schema.field("neighbor").type == pa.int64()
    some = Neighbors.of(points.take(np.array([1, 2])), points, "cosine", POSITIONS, SCORES)
    assert some.ids.tolist() == [[6, 7], [8, None]]
    assert some.to_table().schema.field("neighbor").type == pa.int64()
    assert some.to_table()["better"].to_pylist() == ["higher"] * 3


def test_nobody_has_neighbours():
    points = Posterior(np.zeros((2, 1)), np.ones((2, 1)), ids=["a", "b"])
    nothing = Neighbors.of(points, points, "cosine", np.full((2, 3), -1), np.full((2, 3), np.nan))
    assert nothing.ids.shape == (2, 0)
    assert nothing.to_table().num_rows == 0


def test_a_metric_without_parts():
    def own(queries, candidates):
        return queries.mean @ candidates.mean.T

    points = named()
    found = Neighbors.of(points, points, own, np.array([[1], [0], [3], [2]]), np.ones((4, 1)))
    assert found.parts is None
    assert found.first().parts is None
    assert found.to_table().column_names == ["query", "rank", "neighbor", "score", "metric", "better"]


def test_scores_and_ranks_are_arrays_too():
    pairs = np.array([[0, 1], [2, 0]])
    scores = PairScores(pairs, PARTS.score, PARTS, "cosine", True)
    ranks = PairRanks(pairs, PARTS.score, PARTS, "cosine", True, np.array([3, 1]))
    assert np.asarray(scores).tolist() == PARTS.score.tolist()
    assert np.asarray(ranks, dtype=float).tolist() == [3.0, 1.0]
    assert (len(scores), len(ranks)) == (2, 2)
    assert (repr(scores), repr(ranks)) == ("PairScores(2 pairs, cosine)", "PairRanks(2 pairs, cosine)")


def test_tables_of_pairs():
    pairs = NAMES[np.array([[0, 1], [2, 0]])]
    probable = PairScores(pairs, PARTS.score, PARTS, "log_odds", True, np.array([0.1, 0.9])).to_table()
    assert probable.column_names[:4] == ["source", "target", "probability", "score"]
    assert probable["probability"].to_pylist() == [0.1, 0.9]
    ranks = PairRanks(pairs, PARTS.score, PARTS, "cosine", True, np.array([3, 1])).to_table()
    assert ranks["rank"].to_pylist() == [3, 1]
