import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.kernels import exact
from corrvae.scoring.kernels.selection import count_as_good, count_excluded, insert, is_excluded, keep_best
from corrvae.scoring.metrics import side
from corrvae.scoring.points import Exclusions, Points


def line(values):
    """Points on a line, and their squared distances from the first."""
    mean = np.asarray(values, np.float64)[:, None]
    return side(Points.of(mean, np.ones_like(mean))), ((mean - mean[0]) ** 2).T.astype(np.float32)


METRIC = exact.MEAN_DISTANCE, 1.0, np.empty(0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), unique_by=lambda pair: pair[1], min_size=1))
def test_the_best_are_kept_in_order(offered):
    costs, positions = np.full(4, np.inf), np.full(4, -1)
    for cost, position in offered:
        if positions[-1] < 0 or (cost, position) < (costs[-1], positions[-1]):
            insert(costs, positions, float(cost), position)
    best = sorted(offered)[:4]
    assert list(zip(costs, positions, strict=True))[: len(best)] == best
    assert (positions[len(best) :] == -1).all()


def test_exclusions_are_looked_up():
    exclusions = Exclusions.of(3, np.array([0, 0, 2]), np.array([4, 1, 0]))
    found = [[bool(is_excluded(q, c, exclusions.offsets, exclusions.candidates)) for c in range(5)] for q in range(3)]
    assert np.argwhere(found).tolist() == [[0, 1], [0, 4], [2, 0]]


def test_approximate_costs_are_not_trusted_beyond_their_error():
    points, block = line([0.0, 3.0, 1.0, 2.0])
    wrong = block + np.array([[0.0, -8.5, 0.9, 0.0]], np.float32)  # says 0, 0.5, 1.9, 4 for 0, 9, 1, 4
    nothing = np.zeros(5, np.int64), np.empty(0, np.int64)
    for error, expected in ((10.0, [0, 2]), (0.0, [0, 2])):
        costs, positions = np.full((4, 2), np.inf), np.full((4, 2), -1)
        keep_best(wrong, np.full((1, 1), error), 0, np.arange(4), METRIC, points, points, *nothing, costs, positions)
        assert positions[0].tolist() == expected
        assert costs[0].tolist() == [0.0, 1.0]


def test_counts_are_exact_where_the_error_leaves_them_open():
    points, block = line([0.0, 1.0, -1.0, 2.0, 1.0])
    offsets, costs = np.array([0, 2, 2, 2, 2, 2]), np.array([1.0, 4.0])
    for noise, error in ((0.0, 0.0), (0.4, 0.5), (np.nan, 0.5), (50.0, 100.0)):
        counts = np.zeros(2, np.int64)
        count_as_good(
            block + np.float32(noise), np.full((1, 1), error), 0, 0, METRIC, points, points, offsets, costs, counts
        )
        assert counts.tolist() == [4, 5]


def test_the_excluded_and_the_target_are_taken_back():
    points, _ = line([0.0, 1.0, -1.0, 2.0, 1.0])
    offsets, targets, costs = np.array([0, 2, 2, 2, 2, 2]), np.array([1, 3]), np.array([1.0, 4.0])
    exclusions = Exclusions.of(5, np.array([0, 0]), np.array([0, 3]))
    counts = np.array([4, 5])
    excluded = exclusions.offsets, exclusions.candidates
    count_excluded(METRIC, points, points, offsets, targets, *excluded, costs, counts)
    # Of the first target's four, itself and the query go; of the second's five, itself (excluded) and the query.
    assert counts.tolist() == [2, 3]
