import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.correlated.kernels import choosing


def listed(kernel, matrix, *arguments):
    rows, columns = np.empty((2, matrix.size), np.int32)
    count = kernel(matrix, *arguments, rows, columns)
    chosen = list(zip(rows[:count].tolist(), columns[:count].tolist(), strict=True))
    assert len(set(chosen)) == count
    return set(chosen)


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 40), n_columns=st.integers(1, 40), diagonal=st.booleans())
def test_within_reach(seed, n_rows, n_columns, diagonal):
    generator = np.random.default_rng(seed)
    n_columns = n_rows if diagonal else n_columns
    lower = generator.random((n_rows, n_columns)).astype(np.float32)
    reaches = [generator.random(size).astype(np.float32) for size in (n_rows, n_columns)]
    wanted = (lower <= reaches[0][:, None]) | (lower <= reaches[1])
    wanted = np.triu(wanted) if diagonal else wanted
    assert listed(choosing.within_reach, lower, *reaches, diagonal) == set(zip(*np.nonzero(wanted), strict=True))


def test_what_is_not_a_number_is_within_reach():
    lower = np.array([[np.nan, 2.0]], np.float32)
    reach = np.array([1.0], np.float32), np.full(2, -np.inf, np.float32)
    assert listed(choosing.within_reach, lower, *reach, False) == {(0, 0)}


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(-1, 10), st.integers(0, 5))
def test_first_at_least(values, bound, begin):
    values = np.sort(np.array(values, np.float32))
    begin = min(begin, len(values))
    wanted = begin + np.searchsorted(values[begin:], bound, side="left")
    assert choosing.first_at_least(values, begin, len(values), bound) == wanted


@given(seed=st.integers(0, 10**6))
def test_undecided_pairs_have_a_limit_between_their_bounds(seed):
    generator = np.random.default_rng(seed)
    lower = generator.random((3, 5)).astype(np.float32)
    upper = lower + generator.random((3, 5)).astype(np.float32) / 2
    group_offsets, members = np.array([0, 2, 2, 4]), np.array([0, 3, 1, 2])
    target_offsets = np.array([0, 2, 2, 3, 6])
    limits = np.concatenate([np.sort(generator.random(count)) for count in (2, 1, 3)]).astype(np.float32)
    undecided = np.zeros((3, 5), np.bool_)
    choosing.mark_undecided(lower, upper, group_offsets, members, target_offsets, limits, undecided)
    for row in range(3):
        queries = members[group_offsets[row] : group_offsets[row + 1]]
        mine = np.concatenate([limits[target_offsets[q] : target_offsets[q + 1]] for q in queries] or [limits[:0]])
        for column in range(5):
            between = (lower[row, column] <= mine) & (mine < upper[row, column])
            assert undecided[row, column] == between.any()


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 40), n_columns=st.integers(1, 40), diagonal=st.booleans())
def test_marked(seed, n_rows, n_columns, diagonal):
    undecided = np.random.default_rng(seed).random((n_rows, n_rows if diagonal else n_columns)) < 0.3
    wanted = np.triu(undecided | undecided.T) if diagonal else undecided
    assert listed(choosing.marked, undecided, diagonal) == set(zip(*np.nonzero(wanted), strict=True))


def test_spread():
    rows, columns = np.array([0, 1], np.int32), np.array([2, 1], np.int32)
    matrix = np.full((3, 3), np.nan, np.float32)
    choosing.spread(rows, columns, np.array([5, 6], np.float32), True, matrix)
    assert (matrix[0, 2], matrix[2, 0], matrix[1, 1]) == (5, 5, 6)
    assert np.isnan(matrix).sum() == 6
    choosing.spread(rows[:1], columns[:1], np.array([7], np.float32), False, matrix)
    assert (matrix[0, 2], matrix[2, 0]) == (7, 5)
