import numpy as np

from corrvae.scoring.found import Found
from corrvae.scoring.metrics import ExpectedDistance, Parts
from corrvae.scoring.named import NamedPoints
from corrvae.scoring.results import Matches, PairRanks, PairScores, gather_neighbors, ids_at, pair_ids
from support.literal_scores import random_points

NAMED = NamedPoints(random_points(4, 3, 0), np.array(["a", "b", "c", "d"], dtype=object), True)
FOUND = Found(np.array([[1.0, 2.0, np.nan], [0.5, np.nan, np.nan]]), np.array([[2, 0, -1], [3, -1, -1]]), 5, 8)


def test_neighbours_carry_ids_and_parts_and_are_no_wider_than_needed():
    asked = NAMED.take(np.array([1, 2]))
    result = gather_neighbors(asked, NAMED, ExpectedDistance(), FOUND)
    scores, ids = result
    assert ids.tolist() == [["c", "a"], ["d", None]]
    np.testing.assert_array_equal(scores, FOUND.scores[:, :2])
    np.testing.assert_allclose(result.parts.score, scores)
    plain = ExpectedDistance().parts(NAMED.points, NAMED.points, np.array([[1, 2], [1, 0], [2, 3]]))
    np.testing.assert_array_equal(result.parts.mean[[0, 0, 1], [0, 1, 0]], plain.mean)
    np.testing.assert_array_equal(result.parts.variance[[0, 0, 1], [0, 1, 0]], plain.variance)
    assert result.query_ids.tolist() == ["b", "c"]
    assert (result.n_evaluated, result.n_pairs, result.recall) == (5, 8, None)
    assert repr(result) == "Neighbors(2 queries, 2 each, expected_distance)"


def test_the_first_query_alone():
    scores, ids = first = gather_neighbors(NAMED.take(np.array([1, 2])), NAMED, ExpectedDistance(), FOUND, 0.5).first()
    assert (scores.tolist(), ids.tolist()) == ([1.0, 2.0], ["c", "a"])
    assert first.query_ids.item() == "b"
    assert repr(first) == "Neighbors(1 query, 2 each, expected_distance, recall 0.500)"


def test_scores_and_ranks_are_arrays_too():
    pairs, parts = np.array([[0, 1], [2, 0]]), Parts(np.ones(2), np.zeros(2), np.zeros(2))
    scores = PairScores(np.array([0.5, 2.0]), parts, None, pairs, "cosine")
    ranks = PairRanks(np.array([3, 1]), np.ones(2), parts, pairs, "cosine", 0, 4)
    assert np.asarray(scores).tolist() == [0.5, 2.0]
    assert np.asarray(ranks, dtype=float).tolist() == [3.0, 1.0]
    assert (len(scores), len(ranks)) == (2, 2)
    assert (repr(scores), repr(ranks)) == ("PairScores(2 pairs, cosine)", "PairRanks(2 pairs, cosine)")
    assert repr(Matches(pairs[:1], np.ones(1), parts, "cosine", True, True)) == "Matches(1 pair, cosine, one to one)"


def test_ids_keep_their_kind():
    whole = np.array([5, 6, 7])
    assert ids_at(whole, np.array([[2, 0]])).dtype == np.int64
    assert ids_at(whole, np.array([[2, -1]])).tolist() == [[7, None]]
    assert pair_ids(whole, whole).dtype == np.int64
    tuples = np.empty(1, object)
    tuples[0] = ("a", 1)
    assert pair_ids(tuples, whole[:1]).tolist() == [[("a", 1), 5]]
