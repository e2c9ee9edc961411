import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.scoring.correlated import distinct
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.points import Points
from support.correlated import make_model, make_points, random_rows


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_groups_are_the_equal_rows(kinds):
    values = np.random.default_rng(0).normal(size=(6, 3))[kinds]
    groups = Distinct.of(Points.of(values, np.ones_like(values)))
    _, first = np.unique(kinds, return_index=True)
    assert groups.representatives.tolist() == sorted(first)
    assert len(groups) == len(first)
    for number, begin in enumerate(groups.representatives):
        members = groups.members[groups.offsets[number] : groups.offsets[number + 1]]
        assert members.tolist() == [row for row, kind in enumerate(kinds) if kind == kinds[begin]]


def test_points_that_differ_in_their_vectors_alone_are_different():
    points = make_points(make_model("own"), random_rows(4))
    same = Points.of(np.zeros((4, 3)), np.ones((4, 3)), points.vectors)
    assert len(Distinct.of(same)) == 4
    assert len(Distinct.of(Points.of(np.zeros((4, 3)), np.ones((4, 3))))) == 1


def test_points_that_differ_in_one_number_are_different():
    mean = np.zeros((3, 4), np.float32)
    mean[1, 2] = np.nextafter(np.float32(0), np.float32(1))
    groups = Distinct.of(Points.of(mean, np.ones((3, 4))))
    assert groups.representatives.tolist() == [0, 1]
    assert groups.members.tolist() == [0, 2, 1]


def test_different_points_of_one_hash_are_kept_apart(monkeypatch):
    from corrvae.scoring.correlated.kernels import hashing

    monkeypatch.setattr(hashing, "mix_rows", lambda words, hashes: None)
    groups = distinct.Distinct.of(Points.of(np.arange(6.0).reshape(3, 2), np.ones((3, 2))))
    assert groups.members.tolist() == groups.representatives.tolist() == [0, 1, 2]


def test_some_points_alone():
    groups = Distinct.some(np.array([2, 5]))
    assert groups.representatives.tolist() == groups.members.tolist() == [2, 5]
    assert groups.offsets.tolist() == [0, 1, 2]
