import numpy as np
import pytest

from corrvae.scoring.correlated.ahead import BoundSearch
from corrvae.scoring.correlated.bounds import lower_bounds
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.points import Points


def random_points(n_points, seed):
    generator = np.random.default_rng(seed)
    return Points.of(generator.normal(size=(n_points, 3)), generator.exponential(size=(n_points, 3)))


@pytest.mark.parametrize("memory", [1, 2**30])
@pytest.mark.parametrize("count", [1, 7, 150])
def test_least_bounds_and_the_share_beyond(count, memory):
    queries, candidates = random_points(9, 0), random_points(300, 1)
    right = Distinct.some(np.arange(10, 290))
    search = BoundSearch(queries, candidates, Distinct.each(9), right, n_rows=5, memory=memory)
    groups = np.array([1, 4, 8])
    ends = queries.mean[groups], queries.stddev[groups], candidates.mean[10:290], candidates.stddev[10:290]
    lower = lower_bounds(*ends)
    found = search.least(groups, count)
    chosen = np.sort(np.take_along_axis(lower, found.astype(int), axis=1), axis=1)
    np.testing.assert_allclose(chosen, np.sort(lower, axis=1)[:, :count], rtol=1e-5)
    assert all(len(set(row)) == count for row in found.tolist())
    reach = np.median(lower, axis=1)
    assert search.share_beyond(groups, reach) == pytest.approx((lower > reach[:, None]).mean(), abs=0.01)
