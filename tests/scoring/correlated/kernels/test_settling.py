import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.correlated.kernels import settling
from corrvae.scoring.points import Exclusions

NOWHERE = np.iinfo(np.int64).max


class Groups:
    """Rows and columns that stand for random groups of points."""

    def __init__(self, generator, n_groups):
        sizes = generator.integers(1, 4, n_groups)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.n_points = int(sizes.sum())
        self.group_of = np.empty(self.n_points, int)
        order = generator.permutation(self.n_points)
        self.group_of[order] = np.repeat(np.arange(n_groups), sizes)
        self.members = np.argsort(self.group_of, kind="stable")

    @property
    def arrays(self):
        return self.offsets, self.members


def random_block(seed):
    generator = np.random.default_rng(seed)
    rows, columns = Groups(generator, 4), Groups(generator, 9)
    # few different numbers, so that there are ties
    costs = generator.integers(0, 6, (4, 9)).astype(np.float32)
    excluded = generator.integers(0, [[rows.n_points], [columns.n_points]], (2, 12))
    return generator, rows, columns, costs, Exclusions.of(rows.n_points, *excluded)


def of_points(rows, columns, costs, exclusions):
    """Costs of every query and candidate, infinite where there is none."""
    wide = costs[np.ix_(rows.group_of, columns.group_of)].copy()
    wide[exclusions.queries, exclusions.candidates] = np.inf
    return np.where(np.isnan(wide), np.inf, wide)


@given(seed=st.integers(0, 10**6), kept=st.integers(1, 8))
def test_offers_leave_the_best_by_cost_and_position(seed, kept):
    generator, rows, columns, costs, exclusions = random_block(seed)
    costs[generator.random(costs.shape) < 0.2] = np.nan
    best = np.full((rows.n_points, kept), np.inf, np.float32)
    positions = np.full(best.shape, NOWHERE)
    reach, mark = np.full(rows.n_points, 4.5, np.float32), np.full(columns.n_points, -1)
    of_query = exclusions.offsets, exclusions.candidates, mark
    halves = costs.copy(), costs.copy()
    halves[0][:, ::2] = halves[1][:, 1::2] = np.nan
    for half in halves:
        settling.offer(half, *rows.arrays, *columns.arrays, best, positions, reach, *of_query)
    wanted = of_points(rows, columns, costs, exclusions)
    for query, row in enumerate(wanted):
        order = [c for c in np.argsort(row, kind="stable") if np.isfinite(row[c])][:kept]
        n_found = len(order)
        assert positions[query].tolist() == order + [NOWHERE] * (kept - n_found)
        np.testing.assert_array_equal(best[query, :n_found], row[order])
        assert reach[query] == min(4.5, best[query, -1])


@given(seed=st.integers(0, 10**6))
def test_counts_are_of_candidates_up_to_each_limit(seed):
    generator, rows, columns, costs, exclusions = random_block(seed)
    counts = generator.integers(0, 4, rows.n_points)
    target_offsets = np.concatenate([[0], np.cumsum(counts)])
    limits = np.concatenate([[], *(np.sort(generator.integers(0, 6, count)) for count in counts)]).astype(np.float32)
    steps, mark = np.zeros(len(limits), np.int64), np.full(columns.n_points, -1)
    decided = generator.random(costs.shape) < 0.5
    known, lower = np.where(decided, np.nan, costs).astype(np.float32), np.where(decided, costs, -1).astype(np.float32)
    targets = target_offsets, limits, steps
    of_query = exclusions.offsets, exclusions.candidates, mark
    settling.count(known, lower, *rows.arrays, *columns.arrays, *targets, *of_query)
    wanted = of_points(rows, columns, costs, exclusions)
    for query in range(rows.n_points):
        mine = slice(target_offsets[query], target_offsets[query + 1])
        before = [(wanted[query] <= limit).sum() for limit in limits[mine]]
        # targets with one limit share their first place
        assert np.cumsum(steps[mine]).tolist() == before


@given(seed=st.integers(0, 10**6), kept=st.integers(1, 8))
def test_listed_offers_leave_the_same_as_a_block(seed, kept):
    _, rows, columns, costs, exclusions = random_block(seed)
    best, positions = np.full((rows.n_points, kept), np.inf), np.full((rows.n_points, kept), NOWHERE)
    groups, others = (part.reshape(-1) for part in np.mgrid[:4, :9])
    listed, members = (groups, others, costs[groups, others].astype(float)), (*rows.arrays, *columns.arrays)
    of_query = exclusions.offsets, exclusions.candidates, np.full(columns.n_points, -1)
    settling.offer_listed(*listed, *members, best, positions, *of_query)
    wanted = of_points(rows, columns, costs, exclusions)
    for query, row in enumerate(wanted):
        order = [c for c in np.argsort(row, kind="stable") if np.isfinite(row[c])][:kept]
        assert positions[query].tolist() == order + [NOWHERE] * (kept - len(order))
    # dropping what does not matter changes nothing
    matters = np.zeros(len(groups), np.bool_)
    settling.still_matter(*listed, *members, best, positions, matters)
    again = np.full(best.shape, np.inf), np.full(best.shape, NOWHERE)
    settling.offer_listed(*(part[matters] for part in listed), *members, *again, *of_query)
    np.testing.assert_array_equal(again[1], positions)
