import numpy as np
import pandas as pd
import polars as pl
import pytest

from corrvae.graphs import CorrelationGraph
from corrvae.inference import infer_posterior
from corrvae.nn import FeatureTable
from corrvae.scoring.metrics import Cosine, ExpectedDistance
from corrvae.scoring.points import Points
from corrvae.scoring.reading import NamedPoints, PointReader, TrainingRows, are_ids, is_one_id, place_pairs
from corrvae.tables import Table, fingerprint
from support.training import small_matrix, small_model

X, IDS = small_matrix(6), np.array(list("abcdef"), dtype=object)
NEW = small_matrix(4, seed=1)


def reader(kind="perceptron", features=X, ids=IDS):
    model = small_model(kind)
    posterior = infer_posterior(model, FeatureTable(X))
    rows = TrainingRows(ids, posterior.mean, posterior.stddev, features, fingerprint(X), X.shape[1])
    return PointReader(model, rows, lambda given: given if isinstance(given, Table) else Table(np.asarray(given)))


def pairs_of(exclusions):
    return list(zip(exclusions.queries.tolist(), exclusions.candidates.tolist(), strict=True))


def test_points_by_nothing_ids_and_features():
    read = reader()
    everyone = read.points(None, ExpectedDistance())
    assert everyone.ids is IDS
    some = read.points(["c", "a"], ExpectedDistance())
    assert some.ids.tolist() == ["c", "a"]
    np.testing.assert_array_equal(some.points.mean, everyone.points.mean[[2, 0]])
    assert read.points("b", ExpectedDistance()).ids.tolist() == ["b"]
    new = read.points(NEW, ExpectedDistance())
    assert (new.ids.tolist(), new.known) == ([0, 1, 2, 3], False)
    np.testing.assert_allclose(new.points.mean, infer_posterior(small_model("perceptron"), FeatureTable(NEW)).mean)
    framed = read.points(Table(NEW, pd.Index([5, 7, 9, 11])), ExpectedDistance())
    assert (framed.ids.tolist(), framed.known) == ([5, 7, 9, 11], True)


def test_vectors_are_there_for_correlations_only():
    assert reader().points(None, ExpectedDistance()).points.vectors is not None
    assert reader().points(NEW, ExpectedDistance()).points.vectors is not None
    assert reader().points(None, Cosine()).points.vectors is None
    assert reader(None).points(None, ExpectedDistance()).points.vectors is None


def test_rows_that_have_been_read_are_not_read_again():
    read = reader()
    everyone, new = read.points(None, Cosine()), read.points(NEW, Cosine())
    assert read.points(None, Cosine(), everyone) is everyone
    assert read.points(None, Cosine(), new) is not new


def test_without_features_correlations_need_them_again():
    read = reader(features=None)
    with pytest.raises(ValueError, match="store_features=False"):
        read.points(None, ExpectedDistance())
    assert len(read.points(None, Cosine()).points) == 6
    again = read.points(X, ExpectedDistance())
    assert again.ids is IDS
    assert read.points(None, ExpectedDistance(), again) is again
    assert read.points(["b"], ExpectedDistance(), again).ids.tolist() == ["b"]
    assert read.points(NEW, ExpectedDistance()).ids.tolist() == [0, 1, 2, 3]


def test_unknown_ids_are_refused():
    with pytest.raises(ValueError, match="id 'z' is not among the 6"):
        reader().points(["a", "z"], Cosine())
    with pytest.raises(ValueError, match="id 3 is not among"):
        reader().points(3, Cosine())


def test_exclusions_by_id():
    read = reader()
    everyone, some = read.points(None, Cosine()), read.points(["c", "a"], Cosine())
    assert pairs_of(read.exclusions(everyone, everyone, "self")) == [(i, i) for i in range(6)]
    assert pairs_of(read.exclusions(some, everyone, None)) == []
    assert pairs_of(read.exclusions(everyone, some, "self")) == [(0, 1), (2, 0)]
    graph = CorrelationGraph.from_edges([("a", "b"), ("c", "d")])
    assert pairs_of(read.exclusions(some, everyone, graph)) == [(0, 2), (0, 3), (1, 0), (1, 1)]


def test_exclusions_by_row():
    read = reader()
    everyone, same, new = (read.points(part, Cosine()) for part in (None, X.copy(), NEW))
    assert pairs_of(read.exclusions(same, everyone, "self")) == [(i, i) for i in range(6)]
    numbered = CorrelationGraph.from_edges([(0, 5)], n_vertices=6)
    assert pairs_of(read.exclusions(same, everyone, numbered)) == sorted([(0, 5), (5, 0), *((i, i) for i in range(6))])
    assert pairs_of(read.exclusions(new, new, "self")) == [(i, i) for i in range(4)]
    again = read.points(NEW, Cosine())
    assert pairs_of(read.exclusions(again, new, "self")) == [(i, i) for i in range(4)]
    for asked, among, exclude in ((new, everyone, "self"), (new, new, numbered)):
        with pytest.raises(ValueError, match="points must be recognised"):
            read.exclusions(asked, among, exclude)


def test_as_many_rows_as_in_training_are_not_those_of_training():
    read = reader()
    everyone = read.points(None, Cosine())
    for other in (X[::-1], small_matrix(6, seed=3)):
        strangers = read.points(other, Cosine())
        assert not strangers.known
        with pytest.raises(ValueError, match="points must be recognised"):
            read.exclusions(strangers, everyone, "self")
    with pytest.raises(ValueError, match="points must be recognised"):
        read.exclusions(read.points(NEW, Cosine()), read.points(NEW[::-1], Cosine()), "self")


def test_a_graph_that_counts_can_be_that_of_new_rows():
    read = reader()
    own = CorrelationGraph.from_edges([(0, 3)], n_vertices=4)
    expected = [(0, 0), (0, 3), (1, 1), (2, 2), (3, 0), (3, 3)]
    for new in (NEW, Table(NEW, pd.Index(["p", "q", "r", "s"]))):
        points = read.points(new, Cosine())
        assert pairs_of(read.exclusions(points, points, own)) == expected
    shuffled = read.points(Table(NEW, pd.Index([3, 1, 0, 2])), Cosine())  # by id: positions 2 and 0
    assert (0, 2) in pairs_of(read.exclusions(shuffled, shuffled, own))


def test_a_graph_of_which_nothing_is_known_is_refused():
    read = reader()
    everyone, some = read.points(None, Cosine()), read.points(["c"], Cosine())
    for strange in (CorrelationGraph.from_edges([(0, 1)]), CorrelationGraph.from_edges([("x", "y")])):
        with pytest.raises(ValueError, match="exclude has no vertex that is known: its ids are like"):
            read.exclusions(everyone, everyone, strange)
    # These vertices are rows of training, though none of those asked about.
    assert pairs_of(read.exclusions(some, some, CorrelationGraph.from_edges([("a", "b")]))) == [(0, 0)]


@pytest.mark.parametrize("features", [X, None])
@pytest.mark.parametrize("metric", [ExpectedDistance(), Cosine()])
def test_training_features_are_recognised_whatever_the_metric(features, metric):
    read = reader(features=features)
    for given in (X.copy(), Table(X, pd.Index(IDS))):
        again = read.points(given, metric)
        assert again.ids is IDS
        assert again.known
    renamed = read.points(Table(X, pd.Index(list("uvwxyz"))), metric)
    assert (renamed.ids.tolist(), renamed.known) == (list("uvwxyz"), True)


def test_ids_are_looked_up_among_candidates():
    read = reader(features=None)
    some = read.points(Table(X[1:4], pd.Index(["b", "c", "d"])), ExpectedDistance())
    asked = read.points(["d", "b"], ExpectedDistance(), some)
    assert asked.ids.tolist() == ["d", "b"]
    np.testing.assert_array_equal(asked.points.mean, some.points.mean[[2, 0]])
    assert asked.points.vectors is not None
    with pytest.raises(ValueError, match="to match as left and right"):
        read.points(["a", "b"], ExpectedDistance(), some)
    shuffled = read.points(Table(X[::-1], pd.Index(IDS[::-1])), ExpectedDistance())
    assert read.points(None, ExpectedDistance(), shuffled).ids.tolist() == IDS.tolist()


def test_the_first_training_rows_are_known_by_their_numbers():
    for features in (X, None):
        read = reader(features=features, ids=np.arange(6))
        first = read.points(Table(X[:3], pd.RangeIndex(3)), Cosine())
        assert (first.ids.tolist(), first.known) == ([0, 1, 2], True)
        others = (Table(X[3:], pd.RangeIndex(3)), Table(NEW, pd.RangeIndex(4)), X[:3])
        assert not any(read.points(part, Cosine()).known for part in others)
    assert not reader().points(Table(X[:3], pd.RangeIndex(3)), Cosine()).known


def test_a_row_of_features_is_not_taken_for_ids():
    numbered, n_features = reader(ids=np.arange(6)), X.shape[1]
    whole = np.zeros(n_features, np.int64)
    for row in (X[0], X[0].tolist(), pd.Series(X[0]), pl.Series(X[0]), np.zeros(2)):
        with pytest.raises(ValueError, match="floating-point numbers, which are no ids"):
            numbered.points(row, Cosine())
    for row in (whole, pd.Series(whole), whole.astype(np.uint8)):
        with pytest.raises(ValueError, match=f"{n_features} integers, as many as there are features"):
            numbered.points(row, Cosine())
    for ids in (whole.tolist(), pd.Index(whole), whole[1:], range(2)):
        assert len(numbered.points(ids, Cosine()).points) == len(ids)
    with pytest.raises(ValueError, match="which are no ids"):
        reader().points(X[0], Cosine())
    with pytest.raises(ValueError, match="id 0 is not among"):
        reader().points(whole, Cosine())


@pytest.mark.parametrize("wrong", ["others", 3, np.eye(2)])
def test_exclusions_of_another_kind_are_refused(wrong):
    read = reader()
    everyone = read.points(None, Cosine())
    with pytest.raises(ValueError, match="exclude must be"):
        read.exclusions(everyone, everyone, wrong)


def test_ids_and_features_are_told_apart():
    for one in ("a", b"a", 3, np.int64(3), 2.5):
        assert is_one_id(one)
    for ids in ([], ["a"], [1, 2], range(3), ("a", "b"), np.arange(3), pd.Series([1]), pl.Series(["a"]), pd.Index([1])):
        assert are_ids(ids)
        assert not is_one_id(ids)
    for rows in ([[1.0]], np.eye(2), pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), [(1, 2)]):
        assert not are_ids(rows)
        assert not is_one_id(rows)


def test_pairs_are_placed():
    points = Points.of(np.zeros((3, 1)), np.ones((3, 1)))
    known, unknown = NamedPoints(points, IDS[:3], True), NamedPoints(points, np.arange(3), False)
    assert place_pairs([("c", "a"), ("a", "a")], known).tolist() == [[2, 0], [0, 0]]
    assert place_pairs(np.array([[2, 1]]), unknown).tolist() == [[2, 1]]
    with pytest.raises(ValueError, match=r"^pair 1: id 'z' is not among the 3 points"):
        place_pairs([("a", "b"), ("a", "z")], known)
    with pytest.raises(ValueError, match=r"^pair 0: row 3 is past the end of 3 points"):
        place_pairs([(0, 3)], unknown)
    with pytest.raises(ValueError, match=r"^pair 0: .* has 3 entries where a pair of ids is expected$"):
        place_pairs([("a", "b", 2.0)], known)
    with pytest.raises(ValueError, match=r"^pairs must have two columns, the two points of each; got shape \(2, 3\)$"):
        place_pairs(np.zeros((2, 3), np.int64), unknown)
    with pytest.raises(TypeError, match="a list or an array of pairs, got 5"):
        place_pairs(5, unknown)
    with pytest.raises(TypeError, match="a list or an array of pairs, got 'ab'"):
        place_pairs("ab", known)
    with pytest.raises(TypeError, match="not a CorrelationGraph; its id_pairs are"):
        place_pairs(CorrelationGraph.from_edges([("a", "b")]), known)
    assert place_pairs(np.empty(0), unknown).shape == (0, 2)
    twice = NamedPoints(points, np.array(["a", "b", "a"], dtype=object), True)
    with pytest.raises(ValueError, match="X holds id 'a' twice, at positions 0 and 2"):
        place_pairs([("a", "b")], twice)
