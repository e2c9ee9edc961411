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


def reader(kind="perceptron", features=X):
    model = small_model(kind)
    posterior = infer_posterior(model, FeatureTable(X))
    rows = TrainingRows(IDS, posterior.mean, posterior.stddev, features, fingerprint(X))
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
    framed = read.points(Table(NEW, np.array([5, 7, 9, 11])), ExpectedDistance())
    assert (framed.ids.tolist(), framed.known) == ([5, 7, 9, 11], True)


def test_vectors_are_there_for_correlations_only():
    assert reader().points(None, ExpectedDistance()).points.vectors is not None
    assert reader().points(NEW, ExpectedDistance()).points.vectors is not None
    assert reader().points(None, Cosine()).points.vectors is None
    assert reader(None).points(None, ExpectedDistance()).points.vectors is None


def test_rows_that_have_been_read_are_not_read_again():
    read = reader()
    everyone, new = read.points(None, Cosine()), read.points(NEW, Cosine())
    assert read.points(None, Cosine(), training=everyone) is everyone
    assert read.points(None, Cosine(), training=new) is not new


def test_without_features_correlations_need_them_again():
    read = reader(features=None)
    with pytest.raises(ValueError, match="store_features=False"):
        read.points(None, ExpectedDistance())
    assert len(read.points(None, Cosine()).points) == 6
    again = read.points(X, ExpectedDistance())
    assert again.ids is IDS
    assert read.points(None, ExpectedDistance(), training=again) is again
    assert read.points(["b"], ExpectedDistance(), training=again).ids.tolist() == ["b"]
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
    everyone, same, new = (read.points(part, Cosine()) for part in (None, small_matrix(6, seed=3), NEW))
    assert pairs_of(read.exclusions(same, everyone, "self")) == [(i, i) for i in range(6)]
    numbered = CorrelationGraph.from_edges([(0, 5)], n_vertices=6)
    assert pairs_of(read.exclusions(same, everyone, numbered)) == sorted([(0, 5), (5, 0), *((i, i) for i in range(6))])
    assert pairs_of(read.exclusions(new, new, "self")) == [(i, i) for i in range(4)]
    with pytest.raises(ValueError, match="one row for each of the 6 training rows"):
        read.exclusions(new, everyone, "self")
    with pytest.raises(ValueError, match="points must be recognised"):
        read.exclusions(new, new, numbered)


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
    with pytest.raises(ValueError, match="'z' is not among"):
        place_pairs([("a", "z")], known)
    with pytest.raises(ValueError, match="past the end of 3"):
        place_pairs([(0, 3)], unknown)
