import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.points import Exclusions, Points
from support.unchecked import unchecked

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)))


def exclusions_of(pairs):
    queries, candidates = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    return Exclusions.of(5, queries, candidates)


def pairs_of(exclusions):
    return list(zip(exclusions.queries.tolist(), exclusions.candidates.tolist(), strict=True))


@given(PAIRS, PAIRS)
def test_exclusions_hold_each_pair_once_in_order(first, second):
    assert pairs_of(exclusions_of(first)) == sorted(set(first))
    both = Exclusions.union(5, [exclusions_of(first), exclusions_of(second)])
    assert pairs_of(both) == sorted(set(first) | set(second))
    assert both.counts.tolist() == [len({c for q, c in first + second if q == query}) for query in range(5)]


@given(PAIRS, st.lists(st.integers(0, 4)))
def test_exclusions_of_some_queries(pairs, chosen):
    found = exclusions_of(pairs).take(np.array(chosen, np.int64))
    expected = [(row, c) for row, query in enumerate(chosen) for q, c in sorted(set(pairs)) if q == query]
    assert pairs_of(found) == expected


def test_points_are_float32_and_can_be_taken():
    points = Points.of(np.arange(6.0).reshape(3, 2)[:, ::-1], np.ones((3, 2)))
    assert points.mean.dtype == points.stddev.dtype == np.float32
    assert points.mean.flags.c_contiguous
    some = points.take(np.array([2, 0]))
    assert some.mean.tolist() == [[5.0, 4.0], [1.0, 0.0]]
    assert (len(some), some.n_components, some.vectors) == (2, 2, None)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e39])
def test_what_is_not_finite_is_refused(wrong):
    values = np.ones((4, 3))
    values[2, 1] = wrong
    with pytest.raises(ValueError, match=r"mean of point 2 is -?(nan|inf) in dimension 1"):
        Points.of(values, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"standard deviation of point 2 is -?(nan|inf) in dimension 1"):
        Points.of(np.ones((4, 3)), values)
    with unchecked(), pytest.raises(ValueError, match=r"mean has shape \(4, 3\), but stddev has shape \(3, 3\)"):
        Points.of(np.ones((4, 3)), np.ones((3, 3)))


def test_nothing_can_be_excluded():
    nothing = Exclusions.none(3)
    assert (nothing.offsets.tolist(), nothing.candidates.tolist()) == ([0, 0, 0, 0], [])
